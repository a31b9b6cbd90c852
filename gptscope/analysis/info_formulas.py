"""How the parameters of a model are counted, part by part, in the letters of the design.

An array is a product of letters, a part of a block is a sum of products, and the sum of all blocks
is written as a formula; of GPT-2, where H d_h is d and every matrix has a bias:

    q [d, H d_h]              {("d", "d"): 1}                "d^2"
    q, k, v, out              {("d", "d"): 4, ("d",): 4}     "4 d^2 + 4 d"
    the same in L blocks      L times the same sum           "L (4 d^2 + 4 d)"

An array whose size is not that of its letters is a plain number, {(): 1000}: a formula always gives
the number of parameters that are there.
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
NOTHING = Sum()


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
        "embeddings": written([], n, once=embeddings(model, n)),
        "attention": written([attention(block, n) for block in blocks], n),
        "network": written([network(block, n) for block in blocks], n),
        "normalisations": written([norms(block, n) for block in blocks], n, last_norms(model, n)),
    }
    output = unembedding(model, n)
    return parts | ({"unembedding": written([], n, once=output)} if output else {})


# Arrays and parts as sums


def term(array: Table | None, named: Term, n: Mapping[str, int]) -> Sum:
    """An array as a product of these letters if its size is theirs, else as a number."""
    if array is None:
        return NOTHING
    size = math.prod(array.shape)
    if math.prod(n[letter] for letter in named) != size:
        return Counter({(): size})
    return Counter({tuple(sorted(named, key=list(n).index)): 1})


def linear(part: Linear | None, n_in: Term, n_out: Term, n: Mapping[str, int]) -> Sum:
    """A matrix and its bias."""
    if part is None:
        return NOTHING
    return term(part.stored, n_in + n_out, n) + term(part.bias, n_out, n)


def norm(part: Norm | None, wide: Term, n: Mapping[str, int]) -> Sum:
    """A gain and its shift."""
    return NOTHING if part is None else term(part.gain, wide, n) + term(part.shift, wide, n)


def embeddings(model: Model, n: Mapping[str, int]) -> Sum:
    """The tables of tokens and of positions, if it is learned, and what widens them."""
    learned = model.position_table if model.spec.positions == "learned" else None
    found = term(model.token_table, ("V", token_width(n)), n) + term(learned, ("ctx", "d"), n)
    found += linear(model.project_in, ("d_e",), ("d",), n)
    return found + linear(model.project_out, ("d",), ("d_e",), n)


def unembedding(model: Model, n: Mapping[str, int]) -> Sum:
    """The output table, where it is not the token table once more, and its bias."""
    own = None if model.tied else model.output_table
    return term(own, ("V", token_width(n)), n) + term(model.output_bias, ("V",), n)


def token_width(n: Mapping[str, int]) -> str:
    """How wide the tables of tokens are."""
    return "d_e" if "d_e" in n else "d"


def attention(block: Block, n: Mapping[str, int]) -> Sum:
    """Queries, keys, values, the output matrix, and norms of heads."""
    a = block.attention
    queries = ("d",) if n["H"] * n["d_h"] == n["d"] else ("H", "d_h")
    keys = queries if n["G"] == n["H"] else ("G", "d_h")
    found = linear(a.q, ("d",), queries, n) + linear(a.out, queries, ("d",), n)
    found += linear(a.k, ("d",), keys, n) + linear(a.v, ("d",), keys, n)
    for part, all_heads in ((a.q_norm, queries), (a.k_norm, keys)):
        each = part is not None and math.prod(part.gain.shape) == n["d_h"]
        found += norm(part, ("d_h",) if each else all_heads, n)
    return found


def network(block: Block, n: Mapping[str, int]) -> Sum:
    """The feed-forward layer, with its gate."""
    m = block.mlp
    found = linear(m.up, ("d",), ("F",), n) + linear(m.gate, ("d",), ("F",), n)
    return found + linear(m.down, ("F",), ("d",), n)


def norms(block: Block, n: Mapping[str, int]) -> Sum:
    """The norms of the stream in a block."""
    parts = (block.ln1, block.ln2, block.ln1_post, block.ln2_post)
    return sum((norm(part, ("d",), n) for part in parts), NOTHING)


def last_norms(model: Model, n: Mapping[str, int]) -> Sum:
    """The norms outside of the blocks."""
    return norm(model.ln_final, ("d",), n) + norm(model.embed_norm, ("d",), n)


# Sums as text


def written(blocks: Iterable[Sum], n: Mapping[str, int], once: Sum = NOTHING) -> Formula:
    """The sum of all blocks, L (...) where they are alike, and what is added once."""
    listed = list(blocks)
    alike = Counter(frozenset(one.items()) for one in listed if one)
    every = "L" if len(listed) == n["L"] > 1 else None
    texts = [
        repeated(dict(items), every if every and times == n["L"] else times)
        for items, times in alike.items()
    ]
    texts += [added(once)] if once else []
    return Formula(" + ".join(texts) or "0", sum(evaluated(one, n) for one in [*listed, once]))


def repeated(one: Mapping[Term, int], times: str | int) -> str:
    """A sum so often: `L (2 d F + d)`; `4 L d`, where it is a single product."""
    if len(one) > 1 and times != 1:
        return f"{times} ({added(one)})"
    letter, number = ((times,), 1) if isinstance(times, str) else ((), times)
    return added({(*letter, *named): number * count for named, count in one.items()})


def added(one: Mapping[Term, int]) -> str:
    """`4 d^2 + 4 d`, the longest products first."""
    longest_first = sorted(one.items(), key=lambda pair: (-len(pair[0]), pair[0]))
    return " + ".join(product(named, times) for named, times in longest_first)


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
