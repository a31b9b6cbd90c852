"""Card 9: a score for every token of the vocabulary."""

from __future__ import annotations

from gptscope.commands.session import token_text
from gptscope.commands.tour.card import TOP, Card, Walk
from gptscope.view import Column, Table

COLUMNS = (Column("id", "id"), Column("token", "token"), Column("logit", "signed"))


def card(p: Walk) -> Card:
    """The highest logits after the last token."""
    s, t = p.spec, p.n_tokens
    table = (
        "the token table again, turned: what lies near a token's row scores it high"
        if p.model.tied
        else "a matrix of its own, not the token table (untied)"
    )
    width = p.model.output_table.shape[1]
    d = "d" if width == s.d_model else "d_e"
    stream = "trace.ln_final.out" if p.model.ln_final else "trace.layers[-1].output"
    return Card(
        title="Linear",
        what=(
            f"The last list is multiplied with a list for each of the {s.n_vocab:,} tokens: "
            f"{table}. The dot products are the logits, a score for every next token."
            f"{more(p)}"
        ),
        paper=(
            "The same there: the output shares its matrix with the embedding."
            if p.model.tied
            else "There, the output shares its matrix with the embedding; here it does not."
        ),
        shapes=f"[T, {d}] x [{d}, V] = [{t}, {width}] x [{width}, {s.n_vocab:,}] -> [T, V]",
        formula=formula(p),
        python=in_python(p, f"{stream}[-1]"),
        values=(highest(p),),
    )


def more(p: Walk) -> str:
    """What is said of a matrix before, a bias, a factor and a cap."""
    m, s = p.model, p.spec
    said = {
        f"First a matrix makes {m.output_table.shape[1]} numbers of {s.d_model}.": m.project_out,
        "Each token has a bias of its own.": m.output_bias is not None,
        f"Logits are multiplied by {s.logit_scale:g}.": s.logit_scale != 1,
        f"They are capped softly at {s.logit_cap or 0:g} (Gemma 2, 2024).": s.logit_cap,
    }
    return "".join(f" {text}" for text, so in said.items() if so)


def formula(p: Walk) -> str:
    """With whatever this model does to its logits."""
    m, s = p.model, p.spec
    x = "x" if m.project_out is None else "(x W_d)" if m.project_out.bias is None else "(x W_d + b)"
    z = f"{x} E'" if m.tied else f"{x} U"
    z += "" if s.logit_scale == 1 else f" * {s.logit_scale:g}"
    z += "" if m.output_bias is None else " + c"
    return (
        f"z = {z}" if s.logit_cap is None else f"z = {s.logit_cap:g} tanh(({z}) / {s.logit_cap:g})"
    )


def in_python(p: Walk, x: str) -> str:
    """The logits of a list."""
    m, s = p.model, p.spec
    if m.project_out is not None:
        bias = "" if m.project_out.bias is None else " + model.project_out.bias"
        x = f"({x} @ model.project_out.weight{bias})"
    code = f"{x} @ model.unembedding"
    code += "" if s.logit_scale == 1 else " * model.spec.logit_scale"
    code += "" if m.output_bias is None else " + model.output_bias"
    cap = "model.spec.logit_cap"
    return code if s.logit_cap is None else f"{cap} * numpy.tanh(({code}) / {cap})"


def highest(p: Walk) -> Table:
    """The best few."""
    from gptscope.engine.sampling import ranked

    logits = p.trace.logits[-1]
    ids = ranked(logits, TOP).tolist()
    rows = [(i, token_text(p.model, i), logits[i]) for i in ids]
    return Table(f"The highest logits after {p.last}", COLUMNS, rows)
