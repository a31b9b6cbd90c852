"""The effect of every change of a kind: values taken away, or patched from another pass; paths.

Each pass shares what lies before its change with the others. `sites` says what is changed, `lanes`
runs the passes, `metrics` asks each for a number, `paths` is path patching. What there is to choose
is in `sweep_choices` beside this package, which loads no NumPy.
"""

from gptscope.analysis.sweep.lanes import Lane, work
from gptscope.analysis.sweep.metrics import Setting, measured
from gptscope.analysis.sweep.paths import NOTED, Part, Paths, parts
from gptscope.analysis.sweep.sites import (
    Site,
    ablations,
    normalised,
    over,
    patches,
    sites,
    taken,
)
from gptscope.analysis.sweep_choices import (
    KINDS,
    METRICS,
    REPLACEMENTS,
    Kind,
    Metric,
    Replacement,
)

__all__ = [
    "KINDS",
    "METRICS",
    "NOTED",
    "REPLACEMENTS",
    "Kind",
    "Lane",
    "Metric",
    "Part",
    "Paths",
    "Replacement",
    "Setting",
    "Site",
    "ablations",
    "measured",
    "normalised",
    "over",
    "parts",
    "patches",
    "sites",
    "taken",
    "work",
]
