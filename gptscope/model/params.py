"""Parameters, part by part: counted from sizes alone, or in the arrays of a model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from gptscope.errors import UsageError

if TYPE_CHECKING:
    from gptscope.model.weights import Model


@dataclass(frozen=True)
class Sizes:
    """What the number of parameters of a GPT-2 depends on.

    Raises:
        UsageError: a size is below 0.
    """

    d: int  # width
    L: int  # blocks
    V: int = 50257  # vocabulary
    ctx: int = 2048  # rows of the table of positions; 0 where there is none
    ff: int | None = None  # feed-forward width; 4 d if not given
    tied: bool = True  # the output is the token table once more
    final_norm: bool = True  # a norm after the last block, which GPT-1 has not

    def __post_init__(self) -> None:
        """Refuse what no model can have."""
        if min(self.d, self.L, self.V, self.ctx, self.wide) < 0:
            raise UsageError("a size cannot be below 0")

    @property
    def wide(self) -> int:
        """The feed-forward width, 4 d unless given."""
        return 4 * self.d if self.ff is None else self.ff


class ParameterCount(int):
    """How many parameters a GPT has: a number that knows its parts."""

    embeddings: int
    attention: int
    network: int
    normalisations: int
    unembedding: int  # the output matrix, where it is not the token table

    def __new__(
        cls,
        embeddings: int,
        attention: int,
        network: int,
        normalisations: int,
        unembedding: int = 0,
    ) -> Self:
        """The sum of the parts."""
        parts = (embeddings, attention, network, normalisations, unembedding)
        made = super().__new__(cls, sum(parts))
        made.embeddings, made.attention, made.network = parts[:3]
        made.normalisations, made.unembedding = parts[3:]
        return made

    @property
    def total(self) -> int:
        """All parts together."""
        return int(self)

    @property
    def non_embedding(self) -> int:
        """All but the tables of tokens and positions and the output: N of Kaplan et al. 2020."""
        return self.attention + self.network + self.normalisations


def n_params(
    d: int, L: int, V: int = 50257, ctx: int = 2048, ff: int | None = None, *, tied: bool = True
) -> ParameterCount:
    """Parameters of a GPT-2: width d, L blocks, V tokens, ctx positions, feed-forward width ff.

    `count` says the formulas; `tied=False` counts an output matrix V d beside the token table.

    Raises:
        UsageError: a size is below 0.
    """
    return count(Sizes(d, L, V, ctx, ff, tied))


def count(sizes: Sizes) -> ParameterCount:
    """Parameters of a GPT-2 of these sizes, with a bias for every matrix.

    Embeddings V d + ctx d (ctx = 0: no table of positions), attention L (4 d^2 + 4 d), network
    L (2 d ff + ff + d) with ff = 4 d unless given, normalisations (4 L + 2) d: a gain and a shift
    for two in each block and one at the end, if it is there; untied output V d.
    Radford et al. 2019, section 2.3; Brown et al. 2020, table 2.1 for the sizes.
    """
    d, L, ff = sizes.d, sizes.L, sizes.wide
    return ParameterCount(
        embeddings=sizes.V * d + sizes.ctx * d,
        attention=L * (4 * d * d + 4 * d),
        network=L * (2 * d * ff + ff + d),
        normalisations=(4 * L + 2 * sizes.final_norm) * d,
        unembedding=0 if sizes.tied else sizes.V * d,
    )


def rule_of_thumb(sizes: Sizes) -> int:
    """Matrices alone, without embeddings: L (4 d^2 + 2 d ff), which is 12 L d^2 where ff = 4 d.

    Kaplan et al. 2020, eq. 2.1, with as many numbers in the heads as in the stream.
    """
    return sizes.L * (4 * sizes.d**2 + 2 * sizes.d * sizes.wide)


def sizes_of(model: Model) -> Sizes:
    """The sizes of a loaded model; a computed table of positions has no parameters."""
    s = model.spec
    return Sizes(
        d=s.d_model,
        L=s.n_layers,
        V=s.n_vocab,
        ctx=s.n_ctx if s.positions == "learned" else 0,
        ff=s.d_ff,
        tied=model.tied,
        final_norm=model.ln_final is not None,
    )


def count_tensors(model: Model) -> ParameterCount:
    """The numbers in the arrays of a model, tied ones once; what is computed has none."""
    from gptscope.model.blocks import outlines  # noqa: PLC0415 - sizes alone need no NumPy
    from gptscope.model.weights import n_numbers  # noqa: PLC0415

    homes = {"attention": "attention", "mlp": "network"}
    projections = n_numbers(model.project_in, model.project_out)
    counts = {"attention": 0, "network": 0}
    counts["normalisations"] = n_numbers(model.ln_final, model.embed_norm)
    for block in outlines(model.blocks):
        for f in fields(block):
            counts[homes.get(f.name, "normalisations")] += n_numbers(getattr(block, f.name))
    learned = model.position_table if model.spec.positions == "learned" else None
    return ParameterCount(
        embeddings=n_numbers(model.token_table, learned) + projections,
        unembedding=n_numbers(model.output_bias, None if model.tied else model.output_table),
        **counts,
    )
