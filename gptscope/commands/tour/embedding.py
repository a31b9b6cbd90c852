"""Card 2: every id picks its row of the token table."""

from __future__ import annotations

import math

from gptscope.commands.tour.card import NUMBERS, Card, Walk, numbers

ROUNDED = 2**-8  # some config's factor is rounded to bfloat16


def card(p: Walk) -> Card:
    """A list of numbers for each token."""
    s, t = p.spec, p.n_tokens
    width = p.model.token_table.shape[1]
    table = f"[V, {'d' if width == s.d_model else 'd_e'}] = [{s.n_vocab:,}, {width}]"
    again = (
        "As there, the same table serves once more at the end (linear)."
        if p.model.tied
        else "There, the same table serves once more at the end; this model has another (linear)."
    )
    return Card(
        title="Embedding",
        what=(
            f"Every id picks its row of a learned table: a list of {width} numbers, the same "
            f"wherever the token stands.{widened(p)}{normed(p)}"
        ),
        paper=f"There, the row is multiplied by sqrt(d); {scaled(p)}. {again}",
        shapes=f"table {table}; rows [T, d] = [{t}, {s.d_model}]",
        formula=formula(p),
        python=in_python(p),
        values=(p.table(numbers(s.d_model), (row[:NUMBERS] for row in p.trace.token_embeddings)),),
    )


def scaled(p: Walk) -> str:
    """What becomes of the row here."""
    scale = p.spec.embed_scale
    if scale == 1:
        return "here it is taken as it is"
    if math.isclose(scale, p.spec.d_model**0.5, rel_tol=ROUNDED):
        return "here as well"
    return f"here by {scale:g}"


def widened(p: Walk) -> str:
    """What is said of tables that are narrower than the stream."""
    if p.model.project_in is None:
        return ""
    return f" A learned matrix makes {p.spec.d_model} numbers of them."


def normed(p: Walk) -> str:
    """What is said of a norm of the embeddings."""
    if p.model.embed_norm is None:
        return ""
    return " Before the first block it is normed once (embed_norm)."


def formula(p: Walk) -> str:
    """With the matrix and the factor that this model has."""
    project, scale = p.model.project_in, p.spec.embed_scale
    matrix = "" if project is None else " W_e" if project.bias is None else " W_e + b_e"
    return f"x_t = {factor(scale)}E[id_t]{matrix}"


def factor(scale: float) -> str:
    """A factor in front, where there is one."""
    return "" if scale == 1 else f"{scale:g} "


def in_python(p: Walk) -> str:
    """The rows as they lie in the table; of a table that lies packed, as they were read."""
    import numpy as np

    if p.model.token_table.dtype != p.model.dtype or not isinstance(
        p.model.token_table, np.ndarray
    ):
        return "trace.token_embeddings"
    code, project = "model.token_table[ids]", p.model.project_in
    if project is not None:
        code += " @ model.project_in.weight"
        code += "" if project.bias is None else " + model.project_in.bias"
    if p.spec.embed_scale == 1:
        return code
    return f"({code}) * model.spec.embed_scale" if project else f"{code} * model.spec.embed_scale"
