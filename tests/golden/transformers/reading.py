"""The record of one pass, read out by the names of gptscope."""

import sys

import numpy as np
import torch
from torch import Tensor, nn

from tests.golden.transformers.paths import Paths, paths
from tests.golden.transformers.record import Recorder

Values = dict[str, np.ndarray]
HIDDEN = -1e4  # what GPT puts in place of minus infinity; other families put the smallest float


def flat(x: Tensor) -> np.ndarray:
    """The one text of a batch, or what is flat already: [..., T, n] -> [T, n]."""
    return x.reshape(-1, x.shape[-1]).numpy()


def norm_values(name: str, module: nn.Module, x: np.ndarray, out: np.ndarray) -> Values:
    """What a norm goes through, by its published formula; it must end where the module does."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    gain = 1.0 if weight is None else weight.detach().numpy()
    if type(module).__name__.startswith("Gemma"):
        gain = 1 + gain
    eps = getattr(module, "eps", None) or module.variance_epsilon
    if isinstance(module, nn.LayerNorm):
        mean = x.mean(-1)
        variance = ((x - mean[:, None]) ** 2).mean(-1)
        normalized = (x - mean[:, None]) / np.sqrt(variance + eps)[:, None]
        values = {"mean": mean, "variance": variance}
    else:
        values = {"mean_square": (x * x).mean(-1)}
        normalized = x / np.sqrt(values["mean_square"] + eps)[:, None]
    expected = normalized * gain + (0 if bias is None else bias.detach().numpy())
    if x.dtype == np.float64:
        assert np.abs(expected - out).max() < 1e-13 * max(1, np.abs(out).max()), name
    values |= {"normalized": normalized, "out": out}
    return {f"{name}.{key}": value for key, value in values.items()}


def halves(x: np.ndarray, turning: int) -> np.ndarray:
    """Columns that turn in pairs 0-1, 2-3, ... put in halves, as the other families have them."""
    order = [*range(0, turning, 2), *range(1, turning, 2), *range(turning, x.shape[-1])]
    return x[..., order]


class Reading:
    """What a recorder has noted, by name: all rows of each value."""

    def __init__(self, recorder: Recorder, softmaxes: list[tuple[Tensor, Tensor]]) -> None:
        self.record, self.softmaxes = recorder, softmaxes
        self.model, self.config = recorder.model, recorder.model.config
        self.paths: Paths = paths(self.config)
        self.H = self.config.num_attention_heads
        self.d_head = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.H
        self.G = getattr(self.config, "num_key_value_heads", None) or self.H
        self.length = self.softmaxes[0][0].shape[-1]

    def into(self, path: str) -> np.ndarray:
        """What entered a module."""
        return flat(self.record.inputs[path])

    def outof(self, path: str) -> np.ndarray:
        """What left a module."""
        return flat(self.record.outputs[path])

    def split(self, x: Tensor) -> np.ndarray:
        """[1, T, n * d_h], [1, T, n, d_h] or [1, n, T, d_h] -> [n, T, d_h]."""
        if x.ndim == 4 and x.shape[1] != self.length:
            return x[0].numpy()
        return x.reshape(self.length, -1, self.d_head).transpose(0, 1).numpy()

    def norm(self, name: str, path: str | None) -> Values:
        """A norm's values, if the family has it."""
        if path is None:
            return {}
        return norm_values(name, self.model.get_submodule(path), self.into(path), self.outof(path))

    def embeddings(self) -> Values:
        """From the token's row to where the residual stream begins."""
        scale = getattr(self.config, "embedding_multiplier", 1.0)
        values = {"token_embeddings": self.outof(self.paths.tokens) * scale}
        if self.paths.positions:
            values["position_embeddings"] = self.outof(self.paths.positions)
        values |= self.norm("embed_norm", self.paths.embed_norm)
        return values | {"embeddings": self.into(f"{self.paths.layers}.0")}

    def projected(self, attention: str) -> list[np.ndarray]:
        """Queries, keys and values as the matrices give them: 3 x [n, T, d_h]."""
        outs = [self.record.outputs[f"{attention}.{path}"] for path in self.paths.qkv]
        if self.paths.by_head:
            fused = outs[0].reshape(self.length, self.H, 3, self.d_head)
            outs = list(fused.unbind(2))
        elif len(outs) == 1:
            outs = list(outs[0].split([n * self.d_head for n in (self.H, self.G, self.G)], dim=-1))
        return [self.split(x.reshape(1, self.length, -1)) for x in outs]

    def queries_and_keys(self, layer: int, attention: str) -> dict[str, np.ndarray]:
        """Before the norm, before and after the turn, and values: each [n, T, d_h]."""
        *both, v = self.projected(attention)
        steps: dict[str, np.ndarray] = {}
        if self.paths.norms:
            steps |= {f"{letter}_before_norm": x for letter, x in zip("qk", both, strict=True)}
            normed = [self.record.outputs[f"{attention}.{path}"] for path in self.paths.norms]
            both = [self.split(x) for x in normed]
        if self.paths.rotary and getattr(self.model.get_submodule(attention), "use_rope", True):
            steps |= {f"{letter}_before_rope": x for letter, x in zip("qk", both, strict=True)}
            both = [x[0].numpy() for x in self.record.turned[layer]]
        steps |= {"q": both[0], "k": both[1]}
        if self.paths.side_by_side:
            steps = {name: halves(x, self.config.rotary_dim) for name, x in steps.items()}
        return steps | {"v": v}

    def heads(self, layer: int, attention: str) -> Values:
        """Every value of every head."""
        stacks = self.queries_and_keys(layer, attention)
        groups = self.H // self.G
        stacks = {k: x if len(x) == self.H else x.repeat(groups, axis=0) for k, x in stacks.items()}
        masked, weights = (x[0].numpy().copy() for x in self.softmaxes[layer])
        masked[masked <= HIDDEN] = -np.inf
        stacks |= {
            "scores": stacks["q"] @ stacks["k"].swapaxes(1, 2),
            "scaled_masked": masked - self.row_bias(masked),
            "weights": weights,
            "out": self.split(self.record.inputs[f"{attention}.{self.paths.out}"]),
        }
        return {
            f"layers.{layer}.heads.{head}.{name}": stacks[name][head]
            for head in range(self.H)
            for name in stacks
        }

    def row_bias(self, masked: np.ndarray) -> np.ndarray:
        """What BLOOM adds to a whole row, slope * i, beyond ALiBi's slope * (j - i): [H, T, 1]."""
        if self.config.model_type != "bloom":
            return np.zeros(1, masked.dtype)
        home = sys.modules[type(self.model).__module__]
        slopes = home._get_alibi_slopes(self.H, torch.device("cpu")).numpy()  # noqa: SLF001
        return slopes[:, None, None] * np.arange(self.length, dtype=masked.dtype)[:, None]

    def mlp(self, name: str, layer: str) -> Values:
        """The values of a feed-forward layer."""
        up = self.outof(f"{layer}.{self.paths.up}")
        act = self.into(f"{layer}.{self.paths.down}")
        out = self.outof(f"{layer}.{self.paths.down}") * self.multiplier
        if self.paths.gate is None:
            hidden = {"mlp_hidden": up}
        elif self.paths.gate == self.paths.up:
            hidden = dict(zip(("mlp_gate", "mlp_up"), np.split(up, 2, axis=-1), strict=True))
        else:
            hidden = {"mlp_gate": self.outof(f"{layer}.{self.paths.gate}"), "mlp_up": up}
        values = hidden | {"mlp_act": act, "mlp_out": out}
        return {f"{name}.{key}": value for key, value in values.items()}

    @property
    def multiplier(self) -> float:
        """What Granite multiplies each part by before it is added."""
        return getattr(self.config, "residual_multiplier", 1.0)

    def resid_after_attn(self, layer: str) -> np.ndarray | None:
        """The residual stream between the parts of a block."""
        if self.paths.wiring == "parallel":
            return None
        if self.paths.wiring == "post":
            return self.outof(f"{layer}.{self.paths.ln1}")
        following = self.paths.up if self.paths.wiring == "after" else self.paths.ln2
        return self.into(f"{layer}.{following}")

    def block(self, index: int) -> Values:
        """Every value of one layer."""
        name, layer = f"layers.{index}", f"{self.paths.layers}.{index}"
        attention = f"{layer}.{self.paths.attention}"
        out = f"{attention}.{self.paths.out}"
        values = {f"{name}.input": self.into(layer), f"{name}.output": self.outof(layer)}
        for norm in ("ln1", "ln2", "ln1_post", "ln2_post"):
            path = getattr(self.paths, norm)
            values |= self.norm(f"{name}.{norm}", path and f"{layer}.{path}")
        values |= self.heads(index, attention)
        values |= {
            f"{name}.attn_concat": self.into(out),
            f"{name}.attn_out": self.outof(out) * self.multiplier,
        }
        between = self.resid_after_attn(layer)
        values |= {} if between is None else {f"{name}.resid_after_attn": between}
        return values | self.mlp(name, layer)

    def values(self, logits: Tensor) -> Values:
        """Every value of the pass."""
        values = self.embeddings()
        for index in range(self.config.num_hidden_layers):
            values |= self.block(index)
        values |= self.norm("ln_final", self.paths.final)
        if getattr(self.config, "final_logit_softcapping", None):
            values["logits_before_cap"] = self.outof("lm_head")
        return values | {"logits": flat(logits)}
