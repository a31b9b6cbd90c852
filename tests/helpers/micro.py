"""Micro models made in memory, of any size that Hypothesis thinks of."""

import numpy as np
from hypothesis import strategies as st

from gptscope.engine.ops import ACTIVATIONS
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Linear, Mlp, Model, Norm
from tests.helpers.variants import CHANGES, WIRED


class Draw:
    """Weights large enough that scores are uneven and activations bent."""

    def __init__(self, seed: int, dtype: str, *, bias: bool) -> None:
        self.rng, self.dtype, self.bias = np.random.default_rng(seed), dtype, bias

    def array(self, *shape: int, std: float, mean: float = 0) -> np.ndarray:
        return self.rng.normal(mean, std, shape).astype(self.dtype)

    def linear(self, n_in: int, n_out: int, std: float = 1.0) -> Linear:
        bias = self.array(n_out, std=0.3) if self.bias else None
        return Linear(self.array(n_in, n_out, std=std * n_in**-0.5), bias)

    def norm(self, d: int) -> Norm:
        shift = self.array(d, std=0.3) if self.bias else None
        return Norm(self.array(d, std=0.3, mean=1), shift)

    def block(self, s: Spec) -> Block:
        q, k, v = (self.linear(s.d_model, s.d_model, std) for std in (1.5, 1.5, 1))
        out = self.linear(s.d_model, s.d_model)
        mlp = Mlp(self.linear(s.d_model, s.d_ff, 1.5), self.linear(s.d_ff, s.d_model))
        attention = Attention(q, k, v, out, s.d_head**-0.5)
        return Block(self.norm(s.d_model), attention, self.norm(s.d_model), mlp)


def sizes(  # noqa: PLR0917
    n_layers: int = 2,
    n_heads: int = 2,
    d_head: int = 3,
    d_ff: int = 10,
    n_vocab: int = 13,
    n_ctx: int = 12,
    activation: str = "gelu_new",
) -> Spec:
    """A Spec whose width fits its heads."""
    d = n_heads * d_head
    return Spec("micro", n_layers, n_heads, d, d_head, d_ff, n_vocab, n_ctx, activation)


def micro_model(
    spec: Spec | None = None, seed: int = 0, dtype: str = "float32", *, bias: bool = True
) -> Model:
    """A model with random weights, tied, with positions and a last norm."""
    s, draw = spec or sizes(), Draw(seed, dtype, bias=bias)
    table = draw.array(s.n_vocab, s.d_model, std=0.3)
    return Model(
        spec=s,
        token_table=table,
        position_table=draw.array(s.n_ctx, s.d_model, std=0.3),
        blocks=tuple(draw.block(s) for _ in range(s.n_layers)),
        ln_final=draw.norm(s.d_model),
        output_table=table,
        tied=True,
        dtype=np.dtype(dtype),
        bos_id=0,
    )


@st.composite
def micro_models(draw: st.DrawFn) -> Model:
    """Models of many sizes, both dtypes, with and without biases, of whatever choices fit."""
    n_heads = draw(st.integers(1, 4))
    spec = sizes(
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_heads,
        d_head=draw(st.integers(-(-4 // n_heads), 6)),  # a norm of fewer than 4 is ill-conditioned
        d_ff=draw(st.integers(1, 24)),
        n_vocab=draw(st.integers(1, 40)),
        n_ctx=draw(st.integers(2, 16)),
        activation=draw(st.sampled_from(sorted(ACTIVATIONS))),
    )
    dtype = draw(st.sampled_from(["float32", "float64"]))
    model = micro_model(spec, draw(st.integers(0, 2**32)), dtype, bias=draw(st.booleans()))
    model = draw(st.sampled_from(list(WIRED.values())))(model)
    for change in draw(st.sets(st.sampled_from(list(CHANGES.values())))):
        model = change(model)
    return model


@st.composite
def models_and_ids(draw: st.DrawFn, min_size: int = 1) -> tuple[Model, list[int]]:
    """A model, and ids that it can read."""
    model = draw(micro_models())
    ids = st.integers(0, model.spec.n_vocab - 1)
    return model, draw(st.lists(ids, min_size=min_size, max_size=model.spec.n_ctx))
