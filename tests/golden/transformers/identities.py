"""What must hold between the values of an exact pass, whatever library computed them."""

import math
from typing import Any

import numpy as np

from tests.golden.transformers.paths import paths
from tests.golden.transformers.speeds import speeds, stretch, turn

Values = dict[str, np.ndarray]
CLOSE = 2e-13  # of the largest magnitude, and at least 1


def same(name: str, actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal to the last digits of float64."""
    hidden = np.isneginf(actual)
    assert (hidden == np.isneginf(expected)).all(), name
    error = np.abs(np.where(hidden, 0, actual - np.where(hidden, 0, expected)))
    allowed = CLOSE * max(1.0, float(np.abs(expected[~hidden]).max()))
    assert error.max() <= allowed, f"{name}: {error.max():.2e}, allowed {allowed:.2e}"


def softmax(x: np.ndarray) -> np.ndarray:
    """Each row's shares."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def rope_of(config: Any, layer: int) -> dict[str, Any]:
    """The rotary parameters of a layer."""
    if config.model_type == "gptj":
        return {"rope_type": "default", "rope_theta": 10000}
    rope = config.rope_parameters
    return rope[config.layer_types[layer]] if "full_attention" in rope else rope


def window_of(config: Any, layer: int) -> int | None:
    """How many tokens a layer sees, the token itself among them; None is all."""
    if config.model_type == "gpt_neo":
        return config.window_size if config.attention_layers[layer] == "local" else None
    kinds = getattr(config, "layer_types", None)
    local = kinds is None or kinds[layer] == "sliding_attention"
    return getattr(config, "sliding_window", None) if local else None


def scale_of(config: Any, layer: int, d_head: int) -> float:
    """What raw scores are multiplied by."""
    if config.model_type == "gpt_neo":
        return 1.0
    if config.model_type == "granite":
        return config.attention_multiplier
    by_layer = getattr(config, "scale_attn_by_inverse_layer_idx", False)
    root = math.sqrt(getattr(config, "query_pre_attn_scalar", d_head))
    return 1 / (root * (layer + 1 if by_layer else 1))


def slopes(heads: int) -> list[float]:
    """ALiBi's slopes (Press et al. 2022, section 3; for odd numbers of heads, their code)."""
    power = 2 ** math.floor(math.log2(heads))
    whole = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    between = [2 ** (-8 * (2 * h + 1) / (2 * power)) for h in range(heads - power)]
    return whole + between


def masked(scores: np.ndarray, config: Any, layer: int, head: int, d_head: int) -> np.ndarray:
    """Scores as they enter the softmax."""
    x = scores * scale_of(config, layer, d_head)
    back = np.arange(len(x)) - np.arange(len(x))[:, None]  # 0 is the token itself
    if config.model_type == "bloom":
        x = x + slopes(config.num_attention_heads)[head] * back
    if config.model_type == "gemma2" and config.attn_logit_softcapping:
        x = np.tanh(x / config.attn_logit_softcapping) * config.attn_logit_softcapping
    window = window_of(config, layer) or len(x)
    return np.where((back > 0) | (back <= -window), -np.inf, x)


def check_head(values: Values, config: Any, layer: int, head: int) -> None:
    """One head, from queries to what it hands on."""
    name = f"layers.{layer}.heads.{head}"
    q, k, v, out = (values[f"{name}.{part}"] for part in ("q", "k", "v", "out"))
    scores, enters, shares = (values[f"{name}.{p}"] for p in ("scores", "scaled_masked", "weights"))
    d_head = q.shape[-1]
    same(f"{name}.scores", scores, q @ k.T)
    same(f"{name}.scaled_masked", enters, masked(scores, config, layer, head, d_head))
    same(f"{name}.weights", shares, softmax(enters))
    assert np.abs(shares.sum(-1) - 1).max() < 1e-14, name
    same(f"{name}.out", out, shares @ v)
    if f"{name}.q_before_rope" not in values:
        return
    rope = rope_of(config, layer)
    share = rope.get("partial_rotary_factor", 1)
    width = getattr(config, "rotary_dim", None) or int(d_head * share)
    places = config.max_position_embeddings
    how = speeds(rope, width, places, len(q)), stretch(rope, places)
    for letter, x in (("q", q), ("k", k)):
        same(f"{name}.{letter}", x, turn(values[f"{name}.{letter}_before_rope"], *how))


def gelu_new(x: np.ndarray) -> np.ndarray:
    """The tanh form."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    "gelu_new": gelu_new,
    "gelu_pytorch_tanh": gelu_new,
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_fast": lambda x: 0.5 * x * (1 + np.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "bloom": lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * x * (1 + 0.044715 * x * x))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
}


def activation_of(config: Any) -> Any:
    """The function between the matrices of a feed-forward layer."""
    if config.model_type == "bloom":
        return ACTIVATIONS["bloom"]
    if config.model_type == "openai-gpt":
        return ACTIVATIONS[{"gelu": "gelu_new"}.get(config.afn, config.afn)]
    keys = ("hidden_activation", "activation_function", "hidden_act")
    return ACTIVATIONS[next(getattr(config, key) for key in keys if hasattr(config, key))]


def check_block(values: Values, config: Any, layer: int) -> None:
    """What a block adds, and what it adds to."""
    at = {k.removeprefix(f"layers.{layer}."): v for k, v in values.items()}
    act = activation_of(config)
    hidden = at.get("mlp_hidden")
    expected = act(hidden) if hidden is not None else act(at["mlp_gate"]) * at["mlp_up"]
    same(f"layers.{layer}.mlp_act", at["mlp_act"], expected)
    heads = [at[f"heads.{h}.out"] for h in range(config.num_attention_heads)]
    same(f"layers.{layer}.attn_concat", at["attn_concat"], np.concatenate(heads, axis=-1))
    check_residual(f"layers.{layer}", at, paths(config).wiring, config)


def check_residual(name: str, at: Values, wiring: str, config: Any) -> None:
    """The sums of a block."""
    if wiring == "parallel":
        same(f"{name}.output", at["output"], at["input"] + at["attn_out"] + at["mlp_out"])
        return
    added = [at.get("ln1_post.out", at["attn_out"]), at.get("ln2_post.out", at["mlp_out"])]
    onto = [at["input"], at["resid_after_attn"]]
    if wiring == "after":
        added = [at["ln1.out"], at["ln2.out"]]
    if getattr(config, "apply_residual_connection_post_layernorm", False):
        onto = [at["ln1.out"], at["ln2.out"]]
    sums = [a + b for a, b in zip(onto, added, strict=True)]
    if wiring == "post":
        for norm, x in zip(("ln1", "ln2"), sums, strict=True):
            same(f"{name}.{norm}.mean", at[f"{norm}.mean"], x.mean(-1))
        sums = [at["ln1.out"], at["ln2.out"]]
    same(f"{name}.resid_after_attn", at["resid_after_attn"], sums[0])
    same(f"{name}.output", at["output"], sums[1])


def check(values: Values, config: Any) -> None:
    """Every identity, in every row."""
    start = values.get("embed_norm.out", values["token_embeddings"])
    same("embeddings", values["embeddings"], start + values.get("position_embeddings", 0))
    for layer in range(config.num_hidden_layers):
        before = values["embeddings"] if layer == 0 else values[f"layers.{layer - 1}.output"]
        same(f"layers.{layer}.input", values[f"layers.{layer}.input"], before)
        check_block(values, config, layer)
        for head in range(config.num_attention_heads):
            check_head(values, config, layer, head)
    if "logits_before_cap" in values:
        cap = config.final_logit_softcapping
        same("logits", values["logits"], np.tanh(values["logits_before_cap"] / cap) * cap)
