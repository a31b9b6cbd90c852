"""The values of a norm. Ba, Kiros and Hinton 2016; for RMS norm, Zhang and Sennrich 2019."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.analysis.explain.records import Part, Step, Sum, Term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.explain.place import Place
    from gptscope.model.weights import Norm


def mean(p: Place) -> Iterator[Part]:
    """The mean of the list that a norm reads."""
    (t,), x = p.at, p.read(norm_of(p))
    terms = tuple(Term(str(i), float(value)) for i, value in enumerate(x[t]))
    yield Sum("sum", "dimension", terms, float(x[t].sum()))
    yield Step("mean", f"sum / {x.shape[1]}", float(x[t].mean()))


def variance(p: Place) -> Iterator[Part]:
    """The mean square distance from the mean, over all d numbers."""
    (t,), x = p.at, p.read(norm_of(p))
    yield Step("mean", f"of {x.shape[1]} numbers", float(x[t].mean()))
    terms = tuple(Term(str(i), float(v) ** 2) for i, v in enumerate(x[t] - x[t].mean()))
    yield Sum("sum of (value - mean)^2", "dimension", terms, sum(term.value for term in terms))
    yield Step("variance", f"sum / {x.shape[1]}", float(x[t].var()))


def mean_square(p: Place) -> Iterator[Part]:
    """The mean of the squares, over all d numbers."""
    (t,), x = p.at, p.read(norm_of(p))
    terms = tuple(Term(str(i), float(v) ** 2) for i, v in enumerate(x[t]))
    yield Sum("sum of squares", "dimension", terms, sum(term.value for term in terms))
    yield Step("mean square", f"sum / {x.shape[1]}", float((x[t] ** 2).mean()))


def normalized(p: Place) -> Iterator[Part]:
    """A number less its list's mean, over the list's standard deviation; RMS norm keeps the mean.

    Ba, Kiros and Hinton 2016; Zhang and Sennrich 2019.
    """
    (t, i), eps = p.at, p.model.spec.norm_eps
    x, d = p.read(norm_of(p))[t], p.model.spec.d_model
    yield Step("value", f"what the norm reads, [{t},{i}]", float(x[i]))
    if p.model.spec.norm == "rms_norm":
        middle, size, name = 0.0, float((x**2).mean()), "mean square"
        yield Step(name, f"of {d} numbers", size)
        words = "value / sqrt(mean square + eps)"
    else:
        middle, size = float(x.mean()), float(x.var())
        yield Step("mean", f"of {d} numbers", middle)
        yield Step("variance", f"of {d} numbers", size)
        words = "(value - mean) / sqrt(variance + eps)"
    yield Step("eps", "so that nothing is divided by zero", eps)
    yield Step("normalized", words, (float(x[i]) - middle) / (size + eps) ** 0.5)


def norm_out(p: Place) -> Iterator[Part]:
    """A normalised number times its gain, plus its shift."""
    *steps, last = normalized(p)
    yield from (*steps, last)
    _, i = p.at
    weights = norm_weights(p)
    gain = float(weights.gain[i])
    yield Step("gain", f"gain[{i}]", gain)
    shift = 0.0 if weights.shift is None else float(weights.shift[i])
    if weights.shift is not None:
        yield Step("shift", f"shift[{i}]", shift)
    words = "normalized x gain" if weights.shift is None else "normalized x gain + shift"
    yield Step("out", words, last.value * gain + shift)


def norm_of(p: Place) -> str:
    """`ln1`, `ln2` or `ln_final`."""
    return p.key.partition(".")[0]


def norm_weights(p: Place) -> Norm:
    """Gain and shift of the norm of this place."""
    name = norm_of(p)
    found: Norm | None = p.model.ln_final if name == "ln_final" else getattr(p.block, name)
    assert found is not None  # noqa: S101 - its values are in the trace
    return found
