"""GPT-2 in plain PyTorch with every named value kept: the answer that the engine is held against.

Written from Radford et al. 2019 (section 2.3), Vaswani et al. 2017 (section 3.2) and the design's
table of names. It shares no line with the engine, and uses no fused kernel, so that each name is a
tensor of its own. Weights carry Hugging Face's names without a prefix, matrices are [in, out].
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


def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution's share below x (Hendrycks and Gimpel 2016, section 2)."""
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_new(x: Tensor) -> Tensor:
    """The tanh approximation of GELU (the same paper, section 2), which GPT-2 was trained with."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_new, "relu": torch.relu}


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

    def scale(self, layer: int, d_head: int) -> float:
        """What raw scores are multiplied by in this layer."""
        root = math.sqrt(d_head) if self.settings.divide_by_root else 1.0
        return 1 / (root * (layer + 1 if self.settings.divide_by_layer else 1))

    def head(self, name: str, qkv: tuple[Tensor, Tensor, Tensor], scale: float) -> Tensor:
        """softmax(scale q k' + mask) v, for one head: three times [T, d_h] -> [T, d_h]."""
        q, k, v = (self.note(f"{name}.{letter}", x) for letter, x in zip("qkv", qkv, strict=True))
        scores = self.note(f"{name}.scores", q @ k.T)  # [T, d_h] -> [T, T]
        ahead = torch.ones_like(scores, dtype=torch.bool).triu(1)
        masked = self.note(f"{name}.scaled_masked", (scores * scale).masked_fill(ahead, -math.inf))
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
        seen = self.attention(layer, self.layer_norm(f"{name}.ln1", f"{part}.ln_1", x))
        x = self.note(f"{name}.resid_after_attn", x + seen)
        thought = self.mlp(layer, self.layer_norm(f"{name}.ln2", f"{part}.ln_2", x))
        return self.note(f"{name}.output", x + thought)

    def run(self, ids: Tensor) -> dict[str, Tensor]:
        """Token ids [T] -> every named value of the pass."""
        table = self.weights["wte.weight"]
        x = self.note("token_embeddings", table[ids])  # [T] -> [T, d]
        places = self.note("position_embeddings", self.weights["wpe.weight"][: len(ids)])
        x = self.note("embeddings", x + places)
        for layer in range(self.settings.n_layer):
            x = self.block(layer, x)
        x = self.layer_norm("ln_final", "ln_f", x)
        self.note("logits", x @ self.weights.get("lm_head.weight", table).T)  # [T, d] -> [T, V]
        return self.values


def run(weights: Mapping[str, Tensor], settings: Settings, ids: list[int]) -> dict[str, Tensor]:
    """Every named value of one pass over these ids, in the weights' dtype."""
    return Twin(weights, settings).run(torch.tensor(ids))
