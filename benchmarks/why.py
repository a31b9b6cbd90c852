"""A lens, an attribution and a sweep at the size of GPT-2 small, beside TransformerLens.

    python benchmarks/why.py --rounds 3

Both open the same folder and are asked the same over 16 tokens: what every layer would have said
after every token, what each head gives to a logit, and what that logit is when each head is made 0.
First in processes that have the model open and take turns, then as whole processes, from the
shell's prompt to the answer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import (
    Goal,
    Report,
    Worker,
    installed,
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
from forward import token_ids
from gpt2_small import H, L
from start import environment, gptscope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LENGTH, ANSWER = 16, 1000
OURS, THEIRS = "gptscope", "TransformerLens"
MODULES = {OURS: "why_with_gptscope", THEIRS: "why_with_transformer_lens"}
QUESTIONS = ("pass", "lens", "attribution", "sweep")
COMMANDS = {
    "lens": ("lens",),
    "attribution": ("attribute", "--by", "head"),
    "sweep": ("sweep", "--with", "zero"),
}
WARM_UPS, PAUSE = 1, 0.25
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
TOLERANCE = 1e-4  # of the largest number, if that is above 1

Samples = dict[str, list[float]]


def check(folder: str) -> dict[str, float]:
    """Both give the same numbers to each question, or the run ends."""
    apart = {}
    with Worker(MODULES[OURS]) as ours, Worker(MODULES[THEIRS]) as theirs:
        for question in QUESTIONS:
            asked = ("ask", question, folder, token_ids(LENGTH), ANSWER)
            pairs = list(zip(ours(*asked), theirs(*asked), strict=True))
            scale = max(1.0, *(abs(b) for _, b in pairs))
            apart[question] = max(abs(a - b) for a, b in pairs) / scale
    if not all(difference <= TOLERANCE for difference in apart.values()):  # NaN fails too
        sys.exit(f"the numbers differ: {apart}")
    return apart


def with_the_model_open(folder: str, rounds: int) -> Samples:
    """Seconds of every question in both, in turns."""
    with Worker(MODULES[OURS]) as ours, Worker(MODULES[THEIRS]) as theirs:
        runs = {
            f"{side}, {question}": partial(
                worker, "seconds", question, folder, token_ids(LENGTH), ANSWER
            )
            for question in QUESTIONS
            for side, worker in {OURS: ours, THEIRS: theirs}.items()
        }
        return interleave(runs, rounds, WARM_UPS, PAUSE)


def whole_processes(folder: str, rounds: int) -> Samples:
    """Seconds of every question as a process, in turns."""
    ids = ",".join(str(one) for one in token_ids(LENGTH))
    script = Path(__file__).with_name(f"{MODULES[THEIRS]}.py")
    programs = {}
    for question, command in COMMANDS.items():
        programs[f"{OURS}, {question}"] = [*gptscope(), *command, "-m", folder, "--ids", ids]
        asked = (question, folder, ids, str(ANSWER))
        programs[f"{THEIRS}, {question}"] = [sys.executable, str(script), *asked]
    runs = {name: partial(seconds, program) for name, program in programs.items()}
    return interleave(runs, rounds, WARM_UPS, PAUSE)


def seconds(program: Sequence[str]) -> float:
    """How long a program takes, from its start to its end; it must end well."""
    begin = time.perf_counter()
    done = subprocess.run(program, env=environment(), capture_output=True, check=False)
    taken = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"{' '.join(program)} failed:\n{done.stderr.decode(errors='replace')}")
    return taken


def show(title: str, samples: Mapping[str, Sequence[float]], questions: Sequence[str]) -> None:
    """Each question with both times and their ratio."""
    rows = []
    for question in questions:
        ours, theirs = (samples[f"{side}, {question}"] for side in (OURS, THEIRS))
        times = (
            milliseconds(one) for taken in (ours, theirs) for one in (median(taken), min(taken))
        )
        faster, best = 1 / ratio(samples, question), min(theirs) / min(ours)
        rows.append((question, *times, f"{faster:.2f}", f"{best:.2f}"))
    columns = ("", "gptscope ms", "min", "TransformerLens ms", "min", "times faster", "of min")
    show_table(title, columns, rows)


def goals(open_: Mapping[str, Sequence[float]], whole: Mapping[str, Sequence[float]]) -> list[Goal]:
    """What the medians must keep to."""
    middle = {name: median(taken) for name, taken in open_.items()}
    passes = L * H * middle[f"{OURS}, pass"]
    return [
        Goal(f"sweep over {L * H} heads / {L * H} passes", middle[f"{OURS}, sweep"] / passes, 0.5),
        *(
            Goal(f"{question}: {OURS} / {THEIRS}", ratio(open_, question), 1)
            for question in QUESTIONS[1:]
        ),
        *(Goal(f"{question} as a process", ratio(whole, question), 1) for question in COMMANDS),
    ]


def ratio(samples: Mapping[str, Sequence[float]], question: str) -> float:
    """How long gptscope takes, in times of TransformerLens: of the medians."""
    return median(samples[f"{OURS}, {question}"]) / median(samples[f"{THEIRS}, {question}"])


def run(folder: str, options: argparse.Namespace) -> None:
    """Check, measure, print."""
    facts = machine() | {"transformer-lens": installed("transformer-lens")}
    with Worker("gpt2_small") as builder:
        builder("ensure", folder)
    say("comparing the numbers")
    apart = check(folder)
    say("with the model open")
    open_ = with_the_model_open(folder, options.rounds)
    say("whole processes")
    whole = whole_processes(folder, options.rounds)
    facts["load after"] = load()
    threads = str(options.threads or "as they come")
    show_machine(facts | {"threads": threads, "numbers apart": f"{max(apart.values()):.0e}"})
    show(f"With the model open, {LENGTH} tokens, {options.rounds} rounds", open_, QUESTIONS)
    show(f"Whole processes, {options.rounds} rounds", whole, tuple(COMMANDS))
    found = goals(open_, whole)
    show_goals(found)
    if options.json:
        settings: dict[str, Any] = {"rounds": options.rounds, "tokens": LENGTH, "threads": threads}
        named = {f"{name}, as a process": taken for name, taken in whole.items()}
        write_json(options.json, facts, Report(settings, open_ | named, found, {"apart": apart}))


def main() -> None:
    """Read the options; the model is kept only in a folder that was named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (3)")
    parser.add_argument("--threads", type=int, help="of both; else what they use by themselves")
    parser.add_argument("--folder", help="where the model is, or is written; else a temporary one")
    parser.add_argument("--json", type=Path, help="also write every sample to this file")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    if options.threads:
        os.environ |= dict.fromkeys(THREADS, str(options.threads))
    if options.folder:
        run(options.folder, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(folder, options)


if __name__ == "__main__":
    main()
