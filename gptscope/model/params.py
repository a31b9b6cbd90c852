"""Parameters counted from sizes alone, part by part."""

from dataclasses import dataclass

from gptscope.errors import UsageError


@dataclass(frozen=True)
class ParameterCount:
    """How many parameters each part of a GPT-2 has."""

    embeddings: int
    attention: int
    network: int
    normalisations: int

    @property
    def total(self) -> int:
        """All parts together."""
        return self.embeddings + self.attention + self.network + self.normalisations


def n_params(
    d: int, L: int, V: int = 50257, ctx: int = 2048, ff: int | None = None
) -> ParameterCount:
    """Parameters of a GPT-2: width d, L blocks, V tokens, ctx positions, feed-forward width ff.

    Embeddings V d + ctx d (the output is tied to the tokens; ctx = 0: no table of positions),
    attention L (4 d^2 + 4 d), network L (2 d ff + ff + d) with ff = 4 d unless given,
    normalisations (4 L + 2) d: a gain and a shift for two in each block and one at the end.
    Radford et al. 2019, section 2.3; Brown et al. 2020, table 2.1 for the sizes.

    Raises:
        UsageError: a size is below 0.
    """
    ff = 4 * d if ff is None else ff
    if min(d, L, V, ctx, ff) < 0:
        raise UsageError("a size cannot be below 0")
    return ParameterCount(
        embeddings=V * d + ctx * d,
        attention=L * (4 * d * d + 4 * d),
        network=L * (2 * d * ff + ff + d),
        normalisations=(4 * L + 2) * d,
    )
