"""What kind of GPT: the sizes and the few choices that the engine needs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """Sizes and choices of one model; what the presence of an array already says is not here."""

    family: str  # as config.json names it; for people only, the engine never asks
    n_layers: int  # L
    n_heads: int  # H
    d_model: int  # d
    d_head: int  # d_h
    d_ff: int  # F
    n_vocab: int  # V
    n_ctx: int  # longest text
    activation: str = "gelu_new"  # a key of engine.ops.ACTIVATIONS
    norm: str = "layer_norm"  # a key of engine.norms.NORMS
    norm_eps: float = 1e-5
    wiring: str = "pre_norm"  # a key of engine.forward.WIRINGS
    # A table of the file; or "sinusoidal", a computed one; or "rotary" or "alibi", in the heads;
    # or "none".
    positions: str = "learned"
    # How the file pairs the numbers that turn: "halves" or "neighbours"; for people only, as they
    # are put in halves when they are read.
    pairs: str = "halves"
    causal: bool = True  # whether a token sees only itself and what came before
    kv_heads: int | None = None  # G, where heads share keys and values
    embed_scale: float = 1.0  # rows of the token table times this
    residual_scale: float = 1.0  # what attention and feed-forward layer add, times this
    logit_scale: float = 1.0  # logits times this
    score_cap: float | None = None  # c: scaled scores become c tanh(scores / c)
    logit_cap: float | None = None  # c: logits become c tanh(logits / c)

    @property
    def n_kv_heads(self) -> int:
        """G: heads that have keys and values of their own."""
        return self.kv_heads or self.n_heads
