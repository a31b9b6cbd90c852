"""Phi 3 and Phi 4 (Abdin et al. 2024): the Llama design, its matrices joined in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import apart, found, one_window, usual
from gptscope.model.rotary import FIRST_LENGTH, rope_settings, turning
from gptscope.model.weights import Mlp

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Linear, Model

USUAL = {"full_attn_mod": 1, "interpolate_factor": 1}  # in Phi 4 mini


class Joined(decoder.Layout):
    """Queries, keys and values in one matrix, gates and the other half in another."""

    def qkv(self, name: str) -> tuple[Linear, Linear, Linear]:
        """Queries, keys and values."""
        s = self.spec
        widths = [n * s.d_head for n in (s.n_heads, s.n_kv_heads, s.n_kv_heads)]
        joined = self.linear(f"{name}.qkv_proj", s.d_model, sum(widths), bias=False)
        q, k, v = apart(joined, *widths)
        return q, k, v

    def mlp(self, name: str) -> Mlp:
        """A feed-forward layer with gates."""
        d, f = self.spec.d_model, self.spec.d_ff
        joined = self.linear(f"{name}.gate_up_proj", d, 2 * f, bias=False)
        gate, up = apart(joined, f, f)
        return Mlp(up, self.linear(f"{name}.down_proj", f, d, bias=False), gate)


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Phi 3."""
    return found(config, names, "phi3", ("self_attn.qkv_proj.weight", "mlp.gate_up_proj.weight"))


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(max_position_embeddings=4096, rms_norm_eps=1e-5)
    if not rope_settings(config, None).has(FIRST_LENGTH):
        config.assume(**{FIRST_LENGTH: 4096})
    config.ask(FIRST_LENGTH)
    usual(config, USUAL)
    s = decoder.sizes(config, "phi3")
    layout = Joined(
        tensors,
        s,
        turnings=[turning(config, s.d_head, share=1.0)] * s.n_layers,
        windows=one_window(config, s.n_layers),
        scale=s.d_head**-0.5,
    )
    return decoder.build(config, layout)
