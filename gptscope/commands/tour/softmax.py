"""Card 10: scores become chances."""

from __future__ import annotations

from gptscope.commands.session import token_text
from gptscope.commands.tour.card import TOP, Card, Walk
from gptscope.view import Column, Facts, Table

COLUMNS = (
    Column("token", "token"),
    Column("logit", "signed"),
    Column("exp(logit - maximum)", "length"),
    Column("probability", "probability"),
)


def card(p: Walk) -> Card:
    """The top chances after the last token."""
    return Card(
        title="Softmax",
        what=(
            "Each logit goes through the exponential function and is divided by the sum of all: "
            f"{p.spec.n_vocab:,} chances that add up to 1. Differences become ratios: a logit "
            "higher by 1 is 2.7 times as likely."
        ),
        paper="The same there, and in the attention weights as well.",
        shapes=f"logits [V] = [{p.spec.n_vocab:,}] -> probabilities [V]",
        formula="p_i = exp(z_i - maximum) / sum_j exp(z_j - maximum)",
        python="gptscope.softmax(trace.logits[-1])",
        values=chances(p),
    )


def chances(p: Walk) -> tuple[Table, Facts]:
    """The best few, and what is left for all others."""
    import numpy as np

    from gptscope.engine.sampling import probabilities, ranked

    logits = p.trace.logits[-1]
    probs = probabilities(logits)
    order = ranked(logits, TOP).tolist()
    powers = np.exp(logits - logits.max())
    rows = [(token_text(p.model, i), logits[i], powers[i], probs[i]) for i in order]
    others = (
        (Column("all others", "count"), len(probs) - len(order)),
        (Column("their probability", "probability"), float(np.delete(probs, order).sum())),
    )
    return Table(f"The next token after {p.last}", COLUMNS, rows), Facts("", others)
