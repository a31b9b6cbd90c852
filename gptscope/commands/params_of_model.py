"""Parameters of a loaded model, beside the formula of its sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.params import facts_of, share, table, thumb
from gptscope.model.params import count, count_tensors, sizes_of
from gptscope.view import Column, Note, Part, Table, View

if TYPE_CHECKING:
    from gptscope.model.params import ParameterCount
    from gptscope.model.weights import Block, Model


def view_of_model(model: Model) -> View:
    """The tensors of a model beside the formula of its sizes."""
    from gptscope.commands.session import about_model

    sizes, counted = sizes_of(model), count_tensors(model)
    said = [verdict(model, count(sizes), counted)]
    if unlike_gpt2(model):
        rows, said = own_table(model, counted), [*own_words(model), *said]
    else:
        rows = table(sizes, count(sizes), counted)
    notes: list[Part] = [Note(text) for text in said]
    parts = (facts_of(sizes, f"Sizes of {model.name}"), rows, *notes, thumb(sizes, counted))
    return View("params", parts, model=about_model(model))


def unlike_gpt2(model: Model) -> bool:
    """Whether it has parts, or shapes of them, for which the formula of GPT-2 has no letters."""
    from gptscope.model.blocks import outlines

    s = model.spec
    shapes = s.n_kv_heads != s.n_heads or s.n_heads * s.d_head != s.d_model
    first = outlines(model.blocks)[0]
    more = (first.mlp.gate, first.attention.q_norm, first.ln1_post, model.embed_norm)
    others = (model.project_in, model.output_bias)
    return shapes or first.ln2 is None or any(part is not None for part in (*more, *others))


def own_table(model: Model, counted: ParameterCount) -> Table:
    """The formula of every part as this model has it, in the letters of `gptscope info`."""
    from gptscope.analysis.info_formulas import formulas

    columns = (Column("part"), Column("formula"), Column("by the formula", "count"))
    numbers = (Column("parameters", "count"), Column("share", "probability"))
    found = formulas(model)
    rows = [
        (part, made.text, made.value, n, share(n, counted.total))
        for part, made in found.items()
        for n in (getattr(counted, part),)
    ]
    total = sum(made.value for made in found.values())
    last = ("total", "", total, counted.total, share(counted.total, counted.total))
    return Table("", (*columns, *numbers), [*rows, last])


def own_words(model: Model) -> list[str]:
    """What the letters of its own formulas stand for."""
    from gptscope.analysis.info_formulas import letters

    named = ", ".join(f"{letter} = {n:,}" for letter, n in letters(model).items())
    return [f"The formulas are those of this very model, with {named}."]


def verdict(model: Model, by_formula: ParameterCount, in_file: ParameterCount) -> str:
    """Whether the formula and the tensors agree; if not, where, and why if that is known."""
    parts = ("embeddings", "attention", "network", "normalisations", "unembedding")
    off = {part: getattr(in_file, part) - getattr(by_formula, part) for part in parts}
    if not any(off.values()):
        tied = ", and the tied output matrix counted once" if model.tied else ""
        return f"The formula agrees with the tensors in every part{tied}."
    where = ", ".join(f"{part} {n:+,d}" for part, n in off.items() if n)
    why = listed(differences(model)) or "other parts"
    if unlike_gpt2(model):
        return (
            f"This model has {why}; by the formula of GPT-2 it would have other numbers. The "
            f"tensors less those: {where}."
        )
    return (
        f"The tensors differ from the formula: {where}. The formula is that of GPT-2; this model "
        f"has {why}."
    )


def differences(model: Model) -> list[str]:
    """What the formula of GPT-2 does not count so."""
    from gptscope.model.blocks import outlines

    s, first = model.spec, outlines(model.blocks)[0]
    found = {
        **bare(first),
        "shared keys and values": s.n_kv_heads != s.n_heads,
        "heads that are not d wide together": s.n_heads * s.d_head != s.d_model,
        "gates": first.mlp.gate is not None,
        "norms of queries and keys": first.attention.q_norm is not None,
        "one norm in a block": first.ln2 is None,
        "four norms in a block": first.ln1_post is not None,
        "a norm of the embeddings": model.embed_norm is not None,
        "tables that are widened": model.project_in is not None,
        "a bias of the logits": model.output_bias is not None,
    }
    return [words for words, so in found.items() if so]


def bare(block: Block) -> dict[str, bool]:
    """What a block has not."""
    attention, mlp = block.attention.out.bias is None, block.mlp.down.bias is None
    return {
        "no biases": attention and mlp,
        "no bias in attention's output": attention and not mlp,
        "norms without a shift": block.ln1.shift is None,
    }


def listed(words: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
