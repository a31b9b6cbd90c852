"""GPT-2 (Radford et al. 2019) in PyTorch, and the toy: pre-norm blocks, tied embedding."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.errors import InputError

EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """The sizes of a GPT-2: V tokens, ctx places, width d, L blocks, H heads, inner width F."""

    vocab: int = 4096
    ctx: int = 128
    width: int = 128
    blocks: int = 4
    heads: int = 4
    ff: int = 512

    def __post_init__(self) -> None:
        """Raises InputError if the heads cannot share the width evenly."""
        if self.width % self.heads:
            raise InputError(f"a width of {self.width} cannot be divided among {self.heads} heads")


@dataclass(frozen=True)
class Design:
    """The choices besides the sizes; `causal` hides later tokens, `spread` is of fresh weights."""

    family: str
    sinusoidal: bool
    gelu: str
    spread: float
    causal: bool = True


GPT2 = Design("gpt2", sinusoidal=False, gelu="tanh", spread=0.02)
TOY = Design("toy", sinusoidal=True, gelu="none", spread=8**-0.5)


class Sinusoids(nn.Module):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of it (Vaswani 2017, 3.5)."""

    weight: Tensor

    def __init__(self, sizes: Sizes) -> None:
        """A table [ctx, d], computed in float64; it is no parameter and is not saved."""
        super().__init__()
        place = torch.arange(sizes.ctx, dtype=torch.float64)[:, None]
        pair = torch.arange(0, sizes.width, 2, dtype=torch.float64) / sizes.width
        angles = place / 10000**pair  # [ctx, 1] / [d/2] -> [ctx, d/2]
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # -> [ctx, d]
        self.register_buffer("weight", table.float(), persistent=False)


class Attention(nn.Module):
    """softmax(q k' / sqrt(d_h)) v in each head, as a rule masked (Vaswani et al. 2017, 3.2)."""

    def __init__(self, sizes: Sizes, design: Design) -> None:
        """Three projections in and one out, each with a bias."""
        super().__init__()
        self.heads, self.causal = sizes.heads, design.causal
        self.q = nn.Linear(sizes.width, sizes.width)
        self.k = nn.Linear(sizes.width, sizes.width)
        self.v = nn.Linear(sizes.width, sizes.width)
        self.out = nn.Linear(sizes.width, sizes.width)

    def apart(self, x: Tensor) -> Tensor:
        """One row for each head."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, T, d] -> [B, H, T, d_h]

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        q, k, v = (self.apart(part(x)) for part in (self.q, self.k, self.v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).flatten(2))  # [B, H, T, d_h] -> [B, T, d]


class FeedForward(nn.Module):
    """GELU(x W1 + b1) W2 + b2, tanh or exact GELU (Hendrycks and Gimpel 2016, section 2)."""

    def __init__(self, sizes: Sizes, design: Design) -> None:
        """Two projections, each with a bias."""
        super().__init__()
        self.gelu = design.gelu
        self.up = nn.Linear(sizes.width, sizes.ff)
        self.down = nn.Linear(sizes.ff, sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        return self.down(functional.gelu(self.up(x), approximate=self.gelu))


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, sizes: Sizes, design: Design) -> None:
        """Two norms, one attention, one feed-forward."""
        super().__init__()
        self.ln1 = nn.LayerNorm(sizes.width, EPS)
        self.attn = Attention(sizes, design)
        self.ln2 = nn.LayerNorm(sizes.width, EPS)
        self.mlp = FeedForward(sizes, design)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """Token ids [B, T] -> logits [B, T, V]."""

    def __init__(self, sizes: Sizes, design: Design = GPT2) -> None:
        """A model with fresh weights."""
        super().__init__()
        self.sizes, self.design = sizes, design
        self.tokens = nn.Embedding(sizes.vocab, sizes.width)
        places = Sinusoids(sizes) if design.sinusoidal else nn.Embedding(sizes.ctx, sizes.width)
        self.positions = places
        self.blocks = nn.ModuleList(Block(sizes, design) for _ in range(sizes.blocks))
        self.ln_final = nn.LayerNorm(sizes.width, EPS)
        begin(self)

    def forward(self, ids: Tensor) -> Tensor:
        """[B, T] -> [B, T, V]."""
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]  # [B, T] -> [B, T, d]
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.ln_final(x), self.tokens.weight)  # [B, T, d] -> [B, T, V]


@torch.no_grad()
def begin(model: GPT) -> None:
    """Weights normal with the design's spread, those that write to the residual / sqrt(2 L)."""
    spread = model.design.spread
    for name, weight in model.named_parameters():
        if name.endswith(("attn.out.weight", "mlp.down.weight")):
            weight.normal_(0, spread / (2 * model.sizes.blocks) ** 0.5)
        elif weight.ndim > 1:
            weight.normal_(0, spread)
        elif name.endswith("bias"):
            weight.zero_()
