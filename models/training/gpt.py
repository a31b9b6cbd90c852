"""GPT-2 (Radford et al. 2019), Llama (Touvron et al. 2023) and the toy in PyTorch, all pre-norm."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.design import BASE, EPS, GPT2, Design, Sizes

NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
ACTIVATIONS = {
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}


def angles(ctx: int, width: int) -> Tensor:
    """Angles pos / 10000^(2i/width) of each place and pair, [ctx, width/2] in float64."""
    place = torch.arange(ctx, dtype=torch.float64)[:, None]
    pair = torch.arange(0, width, 2, dtype=torch.float64) / width
    return place / BASE**pair  # [ctx, 1] / [width/2] -> [ctx, width/2]


class Sinusoids(nn.Module):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of it (Vaswani 2017, 3.5)."""

    weight: Tensor

    def __init__(self, sizes: Sizes) -> None:
        """A table [ctx, d], computed in float64; it is no parameter and is not saved."""
        super().__init__()
        turned = angles(sizes.ctx, sizes.width)
        table = torch.stack([turned.sin(), turned.cos()], dim=-1).flatten(1)  # -> [ctx, d]
        self.register_buffer("weight", table.float(), persistent=False)


class Rotary(nn.Module):
    """The pair (i, i + d_h/2) turned by pos / 10000^(2i/d_h) (Su et al. 2021, 3.4; in halves)."""

    cos: Tensor
    sin: Tensor

    def __init__(self, sizes: Sizes) -> None:
        """Two tables [ctx, d_h/2], computed in float64; they are not saved."""
        super().__init__()
        turned = angles(sizes.ctx, sizes.head_width)
        self.register_buffer("cos", turned.cos().float(), persistent=False)
        self.register_buffer("sin", turned.sin().float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, T, d_h] -> [B, H, T, d_h]."""
        cos, sin = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]]
        one, two = x.chunk(2, dim=-1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)


class Attention(nn.Module):
    """softmax(q k' / sqrt(d_h)) v in each head, as a rule masked (Vaswani et al. 2017, 3.2)."""

    def __init__(self, sizes: Sizes, design: Design) -> None:
        """Three projections in and one out; H / G heads share keys and values (Ainslie 2023)."""
        super().__init__()
        self.sizes, self.causal = sizes, design.causal
        inner = sizes.groups * sizes.head_width
        self.q = nn.Linear(sizes.width, sizes.width, design.bias)
        self.k = nn.Linear(sizes.width, inner, design.bias)
        self.v = nn.Linear(sizes.width, inner, design.bias)
        self.out = nn.Linear(sizes.width, sizes.width, design.bias)
        self.turn = Rotary(sizes) if design.positions == "rotary" else nn.Identity()

    def apart(self, x: Tensor) -> Tensor:
        """One row for each head."""
        # [B, T, H d_h] -> [B, H, T, d_h]
        return x.unflatten(-1, (-1, self.sizes.head_width)).transpose(1, 2)

    def shared(self, x: Tensor) -> Tensor:
        """Every key-value head once for each query head that uses it."""
        times = self.sizes.heads // self.sizes.groups
        return x.repeat_interleave(times, dim=1) if times > 1 else x  # [B, G, ...] -> [B, H, ...]

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        q, k, v = (self.apart(part(x)) for part in (self.q, self.k, self.v))
        mixed = functional.scaled_dot_product_attention(
            self.turn(q), self.shared(self.turn(k)), self.shared(v), is_causal=self.causal
        )
        return self.out(mixed.transpose(1, 2).flatten(2))  # [B, H, T, d_h] -> [B, T, d]


class FeedForward(nn.Module):
    """g(x W1 + b1) W2 + b2, or with a gate (silu(x W1) * x W2) W3 (SwiGLU, Shazeer 2020)."""

    def __init__(self, sizes: Sizes, design: Design) -> None:
        """Two projections, or three with a gate."""
        super().__init__()
        self.activation = ACTIVATIONS[design.activation]
        self.gate = nn.Linear(sizes.width, sizes.ff, design.bias) if design.gated else None
        self.up = nn.Linear(sizes.width, sizes.ff, design.bias)
        self.down = nn.Linear(sizes.ff, sizes.width, design.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, sizes: Sizes, design: Design) -> None:
        """Two norms, one attention, one feed-forward."""
        super().__init__()
        norm = NORMS[design.norm]
        self.ln1 = norm(sizes.width, EPS)
        self.attn = Attention(sizes, design)
        self.ln2 = norm(sizes.width, EPS)
        self.mlp = FeedForward(sizes, design)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


def positions_of(sizes: Sizes, design: Design) -> nn.Module | None:
    """The table that is added to the embeddings, if the design has one."""
    if design.positions == "learned":
        return nn.Embedding(sizes.ctx, sizes.width)
    return Sinusoids(sizes) if design.positions == "sinusoidal" else None


class GPT(nn.Module):
    """Token ids [B, T] -> logits [B, T, V]."""

    def __init__(self, sizes: Sizes, design: Design = GPT2) -> None:
        """A model with fresh weights; raises InputError for sizes the design has no place for."""
        super().__init__()
        design.check(sizes)
        self.sizes, self.design = sizes, design
        self.tokens = nn.Embedding(sizes.vocab, sizes.width)
        self.positions = positions_of(sizes, design)
        self.blocks = nn.ModuleList(Block(sizes, design) for _ in range(sizes.blocks))
        self.ln_final = NORMS[design.norm](sizes.width, EPS)
        begin(self)

    def forward(self, ids: Tensor) -> Tensor:
        """[B, T] -> [B, T, V]."""
        x = self.tokens(ids)  # [B, T] -> [B, T, d]
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
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
