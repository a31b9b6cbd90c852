"""The units of a feed-forward layer, and what they add. Vaswani et al. 2017, section 3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gptscope.analysis.explain.attention import multiplied
from gptscope.analysis.explain.records import Part, Step
from gptscope.engine.ops import activation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.explain.place import Place


def hidden_unit(p: Place) -> Iterator[Part]:
    """A feed-forward unit before its activation: what it reads times its weights, plus a bias."""
    mlp = p.block.mlp
    w = mlp.gate if p.key == "mlp_gate" and mlp.gate else mlp.up
    yield p.dot(p.names_read("mlp")[0], w)


def active_unit(p: Place) -> Iterator[Part]:
    """A feed-forward unit after its activation; with a gate, the gate is activated and multiplies.

    Shazeer 2020, "GLU Variants Improve Transformer", section 2.
    """
    gated = p.block.mlp.gate is not None
    (whole,) = hidden_unit(p.of("mlp_gate" if gated else "mlp_hidden", *p.at))
    yield whole
    name = p.model.spec.activation
    after = float(activation(name)(np.array([whole.value]))[0])
    if not gated:
        yield Step("mlp_act", f"{name}({whole.value:.6g})", after)
        return
    yield Step("gate", f"{name}({whole.value:.6g})", after)
    (unit,) = hidden_unit(p.of("mlp_up", *p.at))
    yield unit
    yield Step("mlp_act", "gate x unit", after * unit.value)


def fed(p: Place) -> Iterator[Part]:
    """What a feed-forward layer adds to one number: every unit times its weight, plus a bias."""
    yield p.dot(p.full("mlp_act"), p.block.mlp.down, axis="unit")
    yield from multiplied(p)
