"""GPTs in plain PyTorch with every named value kept: the answer that the engine is held against.

GPT-2 is written from Radford et al. 2019 (section 2.3), Vaswani et al. 2017 (section 3.2) and the
design's table of names; what the toys choose otherwise names its paper where it stands. It shares
no line with the engine, and uses no fused kernel, so that each name is a tensor of its own. Weights
carry Hugging Face's names without a prefix, matrices are [in, out].
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Settings:
    """The few numbers and choices that the weights' shapes do not tell."""

    n_layer: int
    n_head: int
    activation: str = "gelu_new"
    eps: float = 1e-5
    divide_by_root: bool = True
    divide_by_layer: bool = False
    positions: str = "learned"  # or "sinusoidal", "rotary", "none"
    norm: str = "pre"  # or "post"
    norm_type: str = "layer_norm"  # or "rms_norm"
    causal: bool = True
    rope_theta: float = 10000.0

    @classmethod
    def from_hugging_face(cls, config: Mapping[str, object]) -> Self:
        """The settings in a GPT-2 config.json, with the defaults of `GPT2Config`."""
        return cls(
            n_layer=int(str(config["n_layer"])),
            n_head=int(str(config["n_head"])),
            activation=str(config.get("activation_function", "gelu_new")),
            eps=float(str(config.get("layer_norm_epsilon", 1e-5))),
            divide_by_root=bool(config.get("scale_attn_weights", True)),
            divide_by_layer=bool(config.get("scale_attn_by_inverse_layer_idx", False)),
        )

    @classmethod
    def from_toy(cls, config: Mapping[str, object]) -> Self:
        """The settings in a toy's config.json; weights alone tell its biases and output matrix."""
        return cls(
            n_layer=int(str(config["n_layer"])),
            n_head=int(str(config["n_head"])),
            activation=str(config["activation_function"]),
            eps=float(str(config["layer_norm_epsilon"])),
            positions=str(config["positions"]),
            norm=str(config["norm"]),
            norm_type=str(config.get("norm_type", "layer_norm")),
            causal=bool(config["causal"]),
            rope_theta=float(str(config.get("rope_theta", 10000))),
        )


def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution's share below x (Hendrycks and Gimpel 2016, section 2)."""
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_new(x: Tensor) -> Tensor:
    """The tanh approximation of GELU (the same paper, section 2), which GPT-2 was trained with."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_new, "relu": torch.relu}


def angles(length: int, width: int, theta: float) -> Tensor:
    """p times theta^(-2i/width) for place p and pair i, in float64: [length, width / 2].

    The waves of Vaswani et al. 2017 (section 3.5) and the turns of Su et al. 2021 (section 3.2.2).
    """
    places = torch.arange(length, dtype=torch.float64)
    speeds = [theta ** (-2 * i / width) for i in range(width // 2)]
    return places[:, None] * torch.tensor(speeds, dtype=torch.float64)


def sinusoids(length: int, width: int) -> Tensor:
    """sin in the even columns, cos in the odd ones (Vaswani et al. 2017, section 3.5)."""
    waves = angles(length, width, 10000)
    pairs = torch.stack([torch.sin(waves), torch.cos(waves)], dim=-1)  # [T, d / 2, 2]
    return pairs.flatten(1)  # [T, d]


def rotate(x: Tensor, theta: float) -> Tensor:
    """Each pair of columns turned by its place's angle (Su et al. 2021, section 3.4.2): [T, d_h].

    Column i goes with column i + d_h / 2, as Llama's weights are laid out in transformers; in the
    paper it goes with its neighbour.
    """
    turns = angles(len(x), x.shape[-1], theta)
    cos, sin = torch.cos(turns).to(x.dtype), torch.sin(turns).to(x.dtype)
    a, b = x.chunk(2, dim=-1)  # [T, d_h] -> 2 x [T, d_h / 2]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Twin:
    """One pass of one model; `values` fills up with name -> tensor as it runs."""

    def __init__(self, weights: Mapping[str, Tensor], settings: Settings) -> None:
        self.weights, self.settings = weights, settings
        self.values: dict[str, Tensor] = {}

    def note(self, name: str, x: Tensor) -> Tensor:
        """Keep x under its name, and hand it on."""
        self.values[name] = x
        return x

    def linear(self, part: str, x: Tensor) -> Tensor:
        """X W + b, or x W where the file has no b: [T, in] -> [T, out]."""
        y = x @ self.weights[f"{part}.weight"]
        bias = self.weights.get(f"{part}.bias")
        return y if bias is None else y + bias

    def layer_norm(self, name: str, part: str, x: Tensor) -> Tensor:
        """(x - mean) / sqrt(variance + eps) * gain + shift (Ba et al. 2016, equation 4)."""
        mean = self.note(f"{name}.mean", x.sum(-1) / x.shape[-1])  # [T, d] -> [T]
        centred = x - mean[:, None]
        variance = self.note(f"{name}.variance", (centred * centred).sum(-1) / x.shape[-1])
        spread = torch.sqrt(variance + self.settings.eps)[:, None]  # [T] -> [T, 1]
        normalized = self.note(f"{name}.normalized", centred / spread)
        out = normalized * self.weights[f"{part}.weight"]
        shift = self.weights.get(f"{part}.bias")
        return self.note(f"{name}.out", out if shift is None else out + shift)

    def rms_norm(self, name: str, part: str, x: Tensor) -> Tensor:
        """x / sqrt(mean of squares + eps) * gain (Zhang and Sennrich 2019, eq. 4; Llama's eps)."""
        mean_square = self.note(f"{name}.mean_square", (x * x).sum(-1) / x.shape[-1])  # [T]
        spread = torch.sqrt(mean_square + self.settings.eps)[:, None]  # [T] -> [T, 1]
        normalized = self.note(f"{name}.normalized", x / spread)
        return self.note(f"{name}.out", normalized * self.weights[f"{part}.weight"])

    def normed(self, name: str, part: str, x: Tensor) -> Tensor:
        """The model's kind of norm: [T, d] -> [T, d]."""
        kinds = {"layer_norm": self.layer_norm, "rms_norm": self.rms_norm}
        return kinds[self.settings.norm_type](name, part, x)

    def scale(self, layer: int, d_head: int) -> float:
        """What raw scores are multiplied by in this layer."""
        root = math.sqrt(d_head) if self.settings.divide_by_root else 1.0
        return 1 / (root * (layer + 1 if self.settings.divide_by_layer else 1))

    def head(self, name: str, qkv: tuple[Tensor, Tensor, Tensor], scale: float) -> Tensor:
        """softmax(scale q k' + mask) v, for one head: three times [T, d_h] -> [T, d_h]."""
        if self.settings.positions == "rotary":
            q, k, v = qkv
            self.note(f"{name}.q_before_rope", q)
            self.note(f"{name}.k_before_rope", k)
            qkv = rotate(q, self.settings.rope_theta), rotate(k, self.settings.rope_theta), v
        q, k, v = (self.note(f"{name}.{letter}", x) for letter, x in zip("qkv", qkv, strict=True))
        scores = self.note(f"{name}.scores", q @ k.T)  # [T, d_h] -> [T, T]
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1) & self.settings.causal
        masked = self.note(f"{name}.scaled_masked", (scores * scale).masked_fill(hidden, -math.inf))
        powers = torch.exp(masked - masked.max(-1, keepdim=True).values)
        weights = self.note(f"{name}.weights", powers / powers.sum(-1, keepdim=True))
        return self.note(f"{name}.out", weights @ v)  # [T, T] -> [T, d_h]

    def attention(self, layer: int, x: Tensor) -> Tensor:
        """All heads side by side, then the output matrix: [T, d] -> [T, d]."""
        thirds = self.linear(f"h.{layer}.attn.c_attn", x).chunk(3, dim=-1)  # [T, d] -> 3 x [T, d]
        width = thirds[0].shape[-1] // self.settings.n_head
        outs = []
        for h in range(self.settings.n_head):
            q, k, v = (third[:, h * width : (h + 1) * width] for third in thirds)
            outs.append(self.head(f"layers.{layer}.heads.{h}", (q, k, v), self.scale(layer, width)))
        concat = self.note(f"layers.{layer}.attn_concat", torch.cat(outs, dim=-1))
        return self.note(f"layers.{layer}.attn_out", self.linear(f"h.{layer}.attn.c_proj", concat))

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        """act(x U + b) D + c: [T, d] -> [T, F] -> [T, d]."""
        name, part = f"layers.{layer}", f"h.{layer}.mlp"
        hidden = self.note(f"{name}.mlp_hidden", self.linear(f"{part}.c_fc", x))
        act = self.note(f"{name}.mlp_act", ACTIVATIONS[self.settings.activation](hidden))
        return self.note(f"{name}.mlp_out", self.linear(f"{part}.c_proj", act))

    def block(self, layer: int, x: Tensor) -> Tensor:
        """x + attention(norm(x)), and the same again with the MLP: [T, d] -> [T, d]."""
        name, part = f"layers.{layer}", f"h.{layer}"
        x = self.note(f"{name}.input", x)
        seen = self.attention(layer, self.normed(f"{name}.ln1", f"{part}.ln_1", x))
        x = self.note(f"{name}.resid_after_attn", x + seen)
        thought = self.mlp(layer, self.normed(f"{name}.ln2", f"{part}.ln_2", x))
        return self.note(f"{name}.output", x + thought)

    def post_norm_block(self, layer: int, x: Tensor) -> Tensor:
        """norm(x + attention(x)), and the same again with the MLP (Vaswani et al. 2017, 3.1)."""
        name, part = f"layers.{layer}", f"h.{layer}"
        x = self.note(f"{name}.input", x)
        x = self.normed(f"{name}.ln1", f"{part}.ln_1", x + self.attention(layer, x))
        x = self.note(f"{name}.resid_after_attn", x)
        x = self.normed(f"{name}.ln2", f"{part}.ln_2", x + self.mlp(layer, x))
        return self.note(f"{name}.output", x)

    def with_positions(self, x: Tensor) -> Tensor:
        """With what the model adds to say where a token stands, if anything: [T, d] -> [T, d]."""
        if self.settings.positions == "learned":
            places = self.weights["wpe.weight"][: len(x)]
        elif self.settings.positions == "sinusoidal":
            places = sinusoids(len(x), x.shape[-1]).to(x.dtype)
        else:
            return x
        return x + self.note("position_embeddings", places)

    def run(self, ids: Tensor) -> dict[str, Tensor]:
        """Token ids [T] -> every named value of the pass."""
        table = self.weights["wte.weight"]
        x = self.note("token_embeddings", table[ids])  # [T] -> [T, d]
        x = self.note("embeddings", self.with_positions(x))
        pre_norm = {"pre": True, "post": False}[self.settings.norm]
        for layer in range(self.settings.n_layer):
            x = self.block(layer, x) if pre_norm else self.post_norm_block(layer, x)
        if pre_norm:
            x = self.normed("ln_final", "ln_f", x)
        self.note("logits", x @ self.weights.get("lm_head.weight", table).T)  # [T, d] -> [T, V]
        return self.values


def run(weights: Mapping[str, Tensor], settings: Settings, ids: list[int]) -> dict[str, Tensor]:
    """Every named value of one pass over these ids, in the weights' dtype."""
    return Twin(weights, settings).run(torch.tensor(ids))
