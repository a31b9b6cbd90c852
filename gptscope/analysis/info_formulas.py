"""How the parameters of a model are counted, part by part, in the letters of the design.

Every array is a product of letters where its axes are those that they stand for, and a plain
number where they are not: a formula always gives the number of parameters that are there.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gptscope.model.blocks import outlines
from gptscope.model.weights import n_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gptscope.model.weights import Block, Linear, Model, Norm, Table

Term = tuple[str, ...]  # a product of letters; none: 1
Sum = Counter[Term]  # how often each product is added


@dataclass(frozen=True)
class Formula:
    """A formula in words, and the number that it gives."""

    text: str
    value: int


def letters(model: Model) -> dict[str, int]:
    """What each letter stands for, in the order in which a product has them."""
    s = model.spec
    found = {"L": s.n_layers, "V": s.n_vocab, "ctx": s.n_ctx, "d": s.d_model}
    if model.project_in is not None or model.project_out is not None:
        found["d_e"] = model.token_table.shape[1]
    return found | {"H": s.n_heads, "G": s.n_kv_heads, "d_h": s.d_head, "F": s.d_ff}


def formulas(model: Model) -> dict[str, Formula]:
    """The formula of every part, by the names that `ParameterCount` has for them."""
    n, blocks = letters(model), outlines(model.blocks)
    parts = {
        "embeddings": written([embeddings(model, n)], n),
        "attention": written([attention(block, n) for block in blocks], n),
        "network": written([network(block, n) for block in blocks], n),
        "normalisations": with_more(
            written([norms(block, n) for block in blocks], n), last_norms(model, n), n
        ),
    }
    output = unembedding(model, n)
    return parts | ({"unembedding": written([output], n)} if output else {})


def term(array: Table | None, axes: str, n: Mapping[str, int]) -> Sum:
    """An array as a product of these letters if its size is theirs, else as a number."""
    if array is None:
        return Counter()
    named, size = tuple(axes.split()), math.prod(array.shape)
    if math.prod(n[letter] for letter in named) == size:
        return Counter({simple(named, n): 1})
    return Counter({(): size})


def simple(named: Term, n: Mapping[str, int]) -> Term:
    """G is written H where every head has keys of its own, and H d_h is written d where it is d."""
    same = n["G"] == n["H"]
    left = ["H" if letter == "G" and same else letter for letter in named]
    if "H" in left and "d_h" in left and n["H"] * n["d_h"] == n["d"]:
        left.remove("H")
        left[left.index("d_h")] = "d"
    order = {letter: i for i, letter in enumerate(n)}
    return tuple(sorted(left, key=order.__getitem__))


def linear(part: Linear | None, axes: tuple[str, str], n: Mapping[str, int]) -> Sum:
    """A matrix and its bias."""
    if part is None:
        return Counter()
    return term(part.stored, " ".join(axes), n) + term(part.bias, axes[1], n)


def norm(part: Norm | None, axes: str, n: Mapping[str, int]) -> Sum:
    """A gain and its shift."""
    return Counter() if part is None else term(part.gain, axes, n) + term(part.shift, axes, n)


def embeddings(model: Model, n: Mapping[str, int]) -> Sum:
    """The tables of tokens and of positions, if it is learned, and what widens them."""
    wide = "d_e" if "d_e" in n else "d"
    learned = model.position_table if model.spec.positions == "learned" else None
    found = term(model.token_table, f"V {wide}", n) + term(learned, "ctx d", n)
    found += linear(model.project_in, ("d_e", "d"), n)
    return found + linear(model.project_out, ("d", "d_e"), n)


def unembedding(model: Model, n: Mapping[str, int]) -> Sum:
    """The output table, where it is not the token table once more, and its bias."""
    wide = "d_e" if "d_e" in n else "d"
    own = None if model.tied else model.output_table
    return term(own, f"V {wide}", n) + term(model.output_bias, "V", n)


def attention(block: Block, n: Mapping[str, int]) -> Sum:
    """Queries, keys, values, the output matrix, and norms of heads."""
    a = block.attention
    found = linear(a.q, ("d", "H d_h"), n) + linear(a.out, ("H d_h", "d"), n)
    found += linear(a.k, ("d", "G d_h"), n) + linear(a.v, ("d", "G d_h"), n)
    for part, heads in ((a.q_norm, "H"), (a.k_norm, "G")):
        one = part is not None and math.prod(part.gain.shape) == n["d_h"]
        found += norm(part, "d_h" if one else f"{heads} d_h", n)
    return found


def network(block: Block, n: Mapping[str, int]) -> Sum:
    """The feed-forward layer, with its gate."""
    m = block.mlp
    found = linear(m.up, ("d", "F"), n) + linear(m.gate, ("d", "F"), n)
    return found + linear(m.down, ("F", "d"), n)


def norms(block: Block, n: Mapping[str, int]) -> Sum:
    """The norms of the stream in a block."""
    parts = (block.ln1, block.ln2, block.ln1_post, block.ln2_post)
    return sum((norm(part, "d", n) for part in parts), Counter[Term]())


def last_norms(model: Model, n: Mapping[str, int]) -> Sum:
    """The norms outside of the blocks."""
    return norm(model.ln_final, "d", n) + norm(model.embed_norm, "d", n)


def written(sums: Iterable[Sum], n: Mapping[str, int]) -> Formula:
    """The sum of a part over all blocks: L (...) where they are alike."""
    listed = list(sums)
    alike = Counter(frozenset(one.items()) for one in listed)
    every = len(listed) == n["L"] > 1
    texts = [
        repeated(Counter(dict(items)), "L" if every and times == n["L"] else times)
        for items, times in alike.items()
        if items
    ]
    return Formula(" + ".join(texts) or "0", sum(evaluated(one, n) for one in listed))


def repeated(one: Sum, times: str | int) -> str:
    """`L (2 d F + d)`, `4 L d`: a sum so often."""
    if times == 1:
        return added(one)
    if len(one) > 1:
        return f"{times} ({added(one)})"
    ((named, count),) = one.items()
    return (
        product((times, *named), count) if isinstance(times, str) else product(named, times * count)
    )


def with_more(formula: Formula, more: Sum, n: Mapping[str, int]) -> Formula:
    """The formula and what is added once."""
    if not more:
        return formula
    return Formula(f"{formula.text} + {added(more)}", formula.value + evaluated(more, n))


def added(one: Sum) -> str:
    """`4 d^2 + 4 d`, the longest products first."""
    longest_first = sorted(one.items(), key=lambda pair: (-len(pair[0]), pair[0]))
    return " + ".join(product(named, times) for named, times in longest_first) or "0"


def product(named: Term, times: int) -> str:
    """`4 d^2`; a plain number where there is no letter."""
    if not named:
        return str(times)
    powers = (f"{x}^{k}" if k > 1 else x for x, k in Counter(named).items())
    return " ".join([*([str(times)] if times > 1 else []), *powers])


def evaluated(one: Sum, n: Mapping[str, int]) -> int:
    """The number that a sum gives."""
    return sum(times * math.prod(n[x] for x in named) for named, times in one.items())


def largest_block(model: Model) -> int:
    """How many numbers the largest block has."""
    return max((n_numbers(block) for block in outlines(model.blocks)), default=0)
