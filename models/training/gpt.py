"""GPT-2 (Radford et al. 2019) in PyTorch: pre-norm blocks, learned positions, tied embedding."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.errors import InputError

EPS = 1e-5
SPREAD = 0.02


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


class Attention(nn.Module):
    """softmax(q k' / sqrt(d_h)) v in each head, earlier tokens only (Vaswani et al. 2017, 3.2)."""

    def __init__(self, sizes: Sizes) -> None:
        """Three projections in and one out, each with a bias."""
        super().__init__()
        self.heads = sizes.heads
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
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))  # [B, H, T, d_h] -> [B, T, d]


class FeedForward(nn.Module):
    """GELU(x W1 + b1) W2 + b2, with the tanh GELU (Hendrycks and Gimpel 2016, section 2)."""

    def __init__(self, sizes: Sizes) -> None:
        """Two projections, each with a bias."""
        super().__init__()
        self.up = nn.Linear(sizes.width, sizes.ff)
        self.down = nn.Linear(sizes.ff, sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, sizes: Sizes) -> None:
        """Two norms, one attention, one feed-forward."""
        super().__init__()
        self.ln1 = nn.LayerNorm(sizes.width, EPS)
        self.attn = Attention(sizes)
        self.ln2 = nn.LayerNorm(sizes.width, EPS)
        self.mlp = FeedForward(sizes)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """Token ids [B, T] -> logits [B, T, V]."""

    def __init__(self, sizes: Sizes) -> None:
        """A model with fresh weights."""
        super().__init__()
        self.sizes = sizes
        self.tokens = nn.Embedding(sizes.vocab, sizes.width)
        self.positions = nn.Embedding(sizes.ctx, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
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
    """Weights normal with spread 0.02, those that write to the residual with 0.02 / sqrt(2 L)."""
    for name, weight in model.named_parameters():
        if name.endswith(("attn.out.weight", "mlp.down.weight")):
            weight.normal_(0, SPREAD / (2 * model.sizes.blocks) ** 0.5)
        elif weight.ndim > 1:
            weight.normal_(0, SPREAD)
        elif name.endswith("bias"):
            weight.zero_()
