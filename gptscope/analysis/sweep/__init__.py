"""The effect of every change of a kind: values taken away, or patched from another pass; paths.

Each pass shares what lies before its change with the others. `sites` says what is changed, `lanes`
runs the passes, `metrics` asks each for a number, `paths` is path patching.
"""

from gptscope.analysis.sweep.lanes import Lane, work
from gptscope.analysis.sweep.metrics import METRICS, Setting, asks, kl_from, measured
from gptscope.analysis.sweep.paths import NOTED, Part, Paths, parts
from gptscope.analysis.sweep.sites import (
    KINDS,
    REPLACEMENTS,
    Kind,
    Site,
    ablations,
    normalised,
    over,
    patches,
    sites,
    taken,
)

__all__ = [
    "KINDS",
    "METRICS",
    "NOTED",
    "REPLACEMENTS",
    "Kind",
    "Lane",
    "Part",
    "Paths",
    "Setting",
    "Site",
    "ablations",
    "asks",
    "kl_from",
    "measured",
    "normalised",
    "over",
    "parts",
    "patches",
    "sites",
    "taken",
    "work",
]
