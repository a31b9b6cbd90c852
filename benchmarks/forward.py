"""A pass that keeps every value, and cached generation, at the size of GPT-2 small.

    python benchmarks/forward.py --rounds 7 --lengths 6,128,1024

gptscope and transformers open the same folder, each in a process of its own with its default
threads, and take turns. A pause before each turn lets the threads of the one before fall asleep:
OpenBLAS, which NumPy uses, keeps a core busy for 100 ms after its last product.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import (
    Goal,
    Report,
    Worker,
    interleave,
    load,
    machine,
    median,
    milliseconds,
    say,
    show_goals,
    show_machine,
    show_table,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

N_VOCAB = 50257
PROMPT_LENGTH, NEW_TOKENS = 6, 40
WARM_UPS, PAUSE = 2, 0.25
TOLERANCE = 2e-5  # on logits, of their scale

GREEDY, SAMPLING = "gptscope, greedy", "gptscope, default sampling"
THEIRS = "transformers, greedy"
READ, READ_ON_ALL = "reading the weights, one thread", "reading the weights, all cores"


@dataclass(frozen=True)
class Pass:
    """The passes at one length."""

    length: int
    ours: list[float]  # seconds, round by round
    theirs: list[float]
    our_peak: int  # bytes
    their_peak: int

    @property
    def ratio(self) -> float:
        """How long gptscope takes, in times of transformers: of the medians."""
        return median(self.ours) / median(self.theirs)

    @property
    def best_ratio(self) -> float:
        """The same of the fastest rounds."""
        return min(self.ours) / min(self.theirs)


def token_ids(length: int) -> list[int]:
    """The same random ids in every run."""
    return random.Random(length).choices(range(N_VOCAB), k=length)  # noqa: S311


def check(folder: str, lengths: Sequence[int]) -> dict[str, Any]:
    """Both give the same logits at every length, or the run ends; is the greedy text the same?"""
    errors = {}
    with (
        Worker("with_gptscope") as ours,
        Worker("with_transformers") as theirs,
        tempfile.TemporaryDirectory() as place,
    ):
        for length in lengths:
            path = str(Path(place) / "logits.npy")
            theirs("save_logits", folder, token_ids(length), path)
            errors[length] = ours("error", folder, token_ids(length), path)
        question = (folder, token_ids(PROMPT_LENGTH), NEW_TOKENS)
        same = ours("greedy_ids", *question) == theirs("greedy_ids", *question)
        facts = {
            "n_params": ours("n_params", folder),
            "blas": ours("blas"),
            "torch threads": theirs("threads"),
        }
    if not all(error <= TOLERANCE for error in errors.values()):  # NaN fails too
        sys.exit(f"the logits differ: {errors}, of their scale")
    return {"errors": errors, "same greedy text": same, **facts}


def measure_pass(folder: str, length: int, rounds: int) -> Pass:
    """Passes of both over the same ids, in turns; fresh processes, so that peaks are of this."""
    with Worker("with_gptscope") as ours, Worker("with_transformers") as theirs:
        sides = {"ours": ours, "theirs": theirs}
        runs = {
            name: partial(side, "forward", folder, token_ids(length))
            for name, side in sides.items()
        }
        samples = interleave(runs, rounds, WARM_UPS, PAUSE)
        return Pass(length, **samples, our_peak=ours.peak(), their_peak=theirs.peak())


def measure_generation(folder: str, rounds: int) -> dict[str, list[float]]:
    """Seconds per new token of both, and seconds that reading the weights takes, in turns."""
    question = (folder, token_ids(PROMPT_LENGTH), NEW_TOKENS)
    with (
        Worker("with_gptscope") as ours,
        Worker("with_transformers") as theirs,
        Worker("with_gptscope") as reader,
    ):
        runs = {
            GREEDY: partial(ours, "generate", *question, {"temperature": 0}),
            SAMPLING: partial(ours, "generate", *question, {}),
            THEIRS: partial(theirs, "generate", *question),
            READ: partial(reader, "read", folder),
            READ_ON_ALL: partial(reader, "read_on_all_cores", folder),
        }
        return interleave(runs, rounds, WARM_UPS, PAUSE)


def show_passes(passes: Sequence[Pass]) -> None:
    """Each length with both times, their ratio and both peaks of memory."""
    rows = [
        (
            f"{p.length}",
            milliseconds(median(p.ours)),
            milliseconds(min(p.ours)),
            milliseconds(median(p.theirs)),
            milliseconds(min(p.theirs)),
            f"{p.ratio:.2f}",
            f"{p.best_ratio:.2f}",
            f"{p.our_peak / 2**20:,.0f}",
            f"{p.their_peak / 2**20:,.0f}",
        )
        for p in passes
    ]
    times = ("gptscope ms", "min", "transformers ms", "min", "ratio", "of min")
    columns = ("T", *times, "gptscope peak MiB", "transformers peak MiB")
    show_table(f"A pass with its values kept, {len(passes[0].ours)} rounds", columns, rows)


def show_generation(samples: Mapping[str, Sequence[float]]) -> None:
    """Time per token beside the two yardsticks; for these, a token is one reading."""
    middle = {name: median(taken) for name, taken in samples.items()}
    rows = [
        (
            name,
            milliseconds(middle[name]),
            milliseconds(min(taken)),
            f"{1 / middle[name]:.1f}",
            f"{middle[name] / middle[READ]:.2f}",
            f"{middle[name] / middle[READ_ON_ALL]:.2f}",
        )
        for name, taken in samples.items()
    ]
    columns = ("per token", "median ms", "min ms", "a second", "times one thread", "all cores")
    title = f"{NEW_TOKENS} new tokens after {PROMPT_LENGTH}, {len(samples[GREEDY])} rounds"
    show_table(title, columns, rows)


def goals(passes: Sequence[Pass], generation: Mapping[str, Sequence[float]]) -> list[Goal]:
    """What the medians must keep to."""
    middle = {name: median(taken) for name, taken in generation.items()}
    return [
        *(Goal(f"pass at T = {p.length}: gptscope / transformers", p.ratio, 1.0) for p in passes),
        *(
            Goal(f"{ours} / {yardstick}", middle[ours] / middle[yardstick], 1.3)
            for ours in (GREEDY, SAMPLING)
            for yardstick in (READ, READ_ON_ALL)
        ),
    ]


def measure(folder: str, options: argparse.Namespace) -> tuple[list[Pass], dict[str, list[float]]]:
    """The passes at every length, then generation."""
    passes = []
    for length in options.lengths:
        say(f"a pass over {length} tokens")
        passes.append(measure_pass(folder, length, options.rounds))
    say("generation")
    return passes, measure_generation(folder, options.rounds)


def report(
    options: argparse.Namespace,
    passes: Sequence[Pass],
    generation: Mapping[str, Sequence[float]],
    checked: Mapping[str, Any],
) -> Report:
    """Everything that was found."""
    settings = {"rounds": options.rounds, "warm_ups": WARM_UPS, "pause": PAUSE}
    seconds = {f"pass at T = {p.length}, gptscope": p.ours for p in passes}
    seconds |= {f"pass at T = {p.length}, transformers": p.theirs for p in passes}
    peaks = {p.length: {"gptscope": p.our_peak, "transformers": p.their_peak} for p in passes}
    more = {**checked, "peak bytes": peaks}
    return Report(settings, seconds | dict(generation), goals(passes, generation), more)


def run(folder: str, options: argparse.Namespace) -> None:
    """Check, measure, print."""
    facts = machine()
    with Worker("gpt2_small") as builder:  # not here: a child begins with its parent's peak
        builder("ensure", folder)
    say("comparing the logits")
    checked = check(folder, options.lengths)
    passes, generation = measure(folder, options)
    found = report(options, passes, generation, checked)
    facts["load after"] = load()
    show_machine(facts | {name: str(value) for name, value in checked.items()})
    show_passes(passes)
    show_generation(generation)
    show_goals(found.goals)
    if options.json:
        write_json(options.json, facts, found)


def main() -> None:
    """Read the options; the model is kept only in a folder that was named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is run (7)")
    parser.add_argument("--lengths", type=numbers, default=[6, 128, 1024], help="6,128,1024")
    parser.add_argument("--folder", help="where the model is, or is written; else a temporary one")
    parser.add_argument("--json", type=Path, help="also write every sample to this file")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    if options.folder:
        run(options.folder, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(folder, options)


def numbers(text: str) -> list[int]:
    """`6,128,1024` as numbers."""
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
