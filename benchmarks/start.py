"""How long a question takes from the shell's prompt to the answer, beside imports and transformers.

    python benchmarks/start.py --rounds 15

Each run is a new process of this interpreter; gptscope is its console script (`python -m gptscope`
where that is missing). As in a user's installation, modules come from compiled .pyc files: the
children run without PYTHONDONTWRITEBYTECODE, and two rounds before the first that counts write
what is missing and bring every file into memory. What is printed goes to a pipe.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common import (
    Goal,
    Report,
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

TEXT = "Lily wanted to play with her"
QUESTION = ("attention", TEXT, "--layer", "0", "--head", "0")
IMPORTS = "import numpy, typer, rich, safetensors, tokenizers"
WARM_UPS = 2
TOLERANCE = 1e-5  # on attention weights

ATTENTION, HELP, COMMAND_HELP = "gptscope attention", "gptscope --help", "gptscope attention --help"
BARE, BARE_IMPORTS, TRANSFORMERS = "python -c pass", "the five imports alone", "transformers"


def gptscope() -> list[str]:
    """How gptscope is started: the console script of this interpreter, or its module."""
    script = shutil.which("gptscope", path=sysconfig.get_path("scripts"))
    return [script] if script else [sys.executable, "-m", "gptscope"]


def programs() -> dict[str, list[str]]:
    """What is measured: name -> the command line."""
    script = Path(__file__).with_name("ask_transformers.py")
    return {
        BARE: [sys.executable, "-c", "pass"],
        BARE_IMPORTS: [sys.executable, "-c", IMPORTS],
        HELP: [*gptscope(), "--help"],
        COMMAND_HELP: [*gptscope(), "attention", "--help"],
        ATTENTION: [*gptscope(), *QUESTION],
        TRANSFORMERS: [sys.executable, str(script), TEXT],
    }


def environment() -> dict[str, str]:
    """That of a user: compiled modules are kept; transformers is not to ask the network."""
    kept = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"HF_HUB_OFFLINE": "1"}


def output(program: Sequence[str]) -> str:
    """What the program prints; it must end well."""
    done = subprocess.run(program, env=environment(), capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(program)} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def seconds(program: Sequence[str]) -> float:
    """How long the program takes, from its start to its end."""
    begin = time.perf_counter()
    output(program)
    return time.perf_counter() - begin


def check_answers() -> float:
    """The largest difference between the weights of both; more than the tolerance ends the run."""
    view = json.loads(output([*gptscope(), *QUESTION, "--format", "json"]))
    grid = next(part["values"] for part in view["parts"] if part["kind"] == "grid")
    ours = [weight or 0.0 for row in grid for weight in row]  # null stands for a hidden token
    theirs = [float(word) for word in output(programs()[TRANSFORMERS]).split()]
    difference: float = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    if not difference <= TOLERANCE:  # so that NaN does not pass
        sys.exit(f"the weights differ by {difference:.1e}")
    return difference


def goals(middle: Mapping[str, float]) -> list[Goal]:
    """What the medians must keep to."""
    imports, theirs = middle[BARE_IMPORTS], middle[TRANSFORMERS]
    return [
        Goal(f"{ATTENTION} / {BARE_IMPORTS}", middle[ATTENTION] / imports, 1.5),
        Goal(f"{TRANSFORMERS} / {ATTENTION}", theirs / middle[ATTENTION], 15, at_least=True),
    ]


def show(samples: Mapping[str, Sequence[float]]) -> None:
    """Every program with its median, its best and the two ratios."""
    middle = {name: median(taken) for name, taken in samples.items()}
    rows = [
        (
            name,
            milliseconds(middle[name]),
            milliseconds(min(taken)),
            f"{middle[name] / middle[BARE_IMPORTS]:.2f}",
            f"{middle[TRANSFORMERS] / middle[name]:.1f}",
        )
        for name, taken in samples.items()
    ]
    columns = ("program", "median ms", "min ms", "times the imports", "times faster than transf.")
    show_table(f"From start to end, {len(samples[BARE])} rounds", columns, rows)


def main() -> None:
    """Check, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="how often each is run (15)")
    parser.add_argument("--json", type=Path, help="also write every sample to this file")
    options = parser.parse_args()
    facts = machine()
    difference = check_answers()
    say(f"the same weights, but for {difference:.1e}; {options.rounds} rounds")
    runs = {name: partial(seconds, program) for name, program in programs().items()}
    samples = interleave(runs, options.rounds, WARM_UPS)
    found = goals({name: median(taken) for name, taken in samples.items()})
    facts["load after"] = load()
    show_machine(facts)
    show(samples)
    show_goals(found)
    if options.json:
        settings = {"rounds": options.rounds, "warm_ups": WARM_UPS, "text": TEXT}
        write_json(options.json, facts, Report(settings, samples, found, {}))


if __name__ == "__main__":
    main()
