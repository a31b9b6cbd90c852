"""The values of a norm. Ba, Kiros and Hinton 2016; for RMS norm, Zhang and Sennrich 2019."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.analysis.explain.records import Part, Step, Sum, Term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.explain.place import Place


def mean(p: Place) -> Iterator[Part]:
    """The mean of the list that a norm reads."""
    x, (t,) = p.read(norm_of(p)), p.at
    terms = tuple(Term(str(i), float(value)) for i, value in enumerate(x[t]))
    yield Sum("sum", "dimension", terms, source=source(p, "i"))
    yield Step("mean", f"sum / {len(terms)}", float(x[t].mean()))


def variance(p: Place) -> Iterator[Part]:
    """The mean square distance from the mean, over all d numbers."""
    x, (t,) = p.read(norm_of(p)), p.at
    yield Step("mean", f"of {x.shape[1]} numbers x, {source(p, 'i')}", float(x[t].mean()))
    terms = tuple(Term(str(i), float(v) ** 2) for i, v in enumerate(x[t] - x[t].mean()))
    yield Sum("sum", "dimension", terms, source="(x - mean)^2")
    yield Step("variance", f"sum / {len(terms)}", float(x[t].var()))


def mean_square(p: Place) -> Iterator[Part]:
    """The mean of the squares, over all d numbers."""
    x, (t,) = p.read(norm_of(p)), p.at
    terms = tuple(Term(str(i), float(v) ** 2) for i, v in enumerate(x[t]))
    yield Sum("sum", "dimension", terms, source=f"x^2, with x = {source(p, 'i')}")
    yield Step("mean square", f"sum / {len(terms)}", float((x[t] ** 2).mean()))


def normalized(p: Place) -> Iterator[Part]:
    """A number less its list's mean, over the list's standard deviation; RMS norm keeps the mean.

    Ba, Kiros and Hinton 2016; Zhang and Sennrich 2019.
    """
    (t, i), eps = p.at, p.model.spec.norm_eps
    x, d = p.read(norm_of(p))[t], p.model.spec.d_model
    yield read_number(p)
    if p.model.spec.norm == "rms_norm":
        middle, size = 0.0, float((x**2).mean())
        yield Step("mean square", f"of {d} numbers", size)
        words = "x / sqrt(mean square + eps)"
    else:
        middle, size = float(x.mean()), float(x.var())
        yield Step("mean", f"of {d} numbers", middle)
        yield Step("variance", f"of {d} numbers", size)
        words = "(x - mean) / sqrt(variance + eps)"
    yield Step("eps", "so that nothing is divided by zero", eps)
    yield Step("normalized", words, (float(x[i]) - middle) / (size + eps) ** 0.5)


def norm_out(p: Place) -> Iterator[Part]:
    """A normalised number times its gain, plus its shift."""
    *steps, last = normalized(p)
    yield from (*steps, last)
    _, i = p.at
    weights = p.model.norm(p.full(p.key).rpartition(".")[0])
    gain = float(weights.gain[i])
    yield Step("gain", f"gain[{i}]", gain)
    if weights.shift is None:
        yield Step("out", "normalized x gain", last.value * gain)
        return
    shift = float(weights.shift[i])
    yield Step("shift", f"shift[{i}]", shift)
    yield Step("out", "normalized x gain + shift", last.value * gain + shift)


def read_number(p: Place) -> Part:
    """The number x that is normalised; a sum where the norm stands after one."""
    t, i = p.at
    names = p.names_read(norm_of(p))
    values = [float(p.trace[name][t, i]) for name in names]
    if len(names) == 1:
        return Step("x", f"{names[0]}[{t},{i}]", values[0])
    return Sum("x", "part", tuple(map(Term, names, values)), source=f"each at [{t},{i}]")


def source(p: Place, index: str) -> str:
    """The addresses of what a norm reads: `layers.1.input[5,i]`."""
    t = p.at[0]
    return " + ".join(f"{name}[{t},{index}]" for name in p.names_read(norm_of(p)))


def norm_of(p: Place) -> str:
    """`ln1`, `ln2_post`, `ln_final`, `embed_norm`."""
    return p.key.partition(".")[0]
