"""Time and peak memory on a checkpoint far larger than a pass may hold.

    python benchmarks/memory.py --folder large-model

A checkpoint in the shape of Llama, 4,009,430,016 parameters in BF16 over five shards (8.0 GB,
random, seeded), is written into the folder once. Each command is a process of its own. Beside it,
in the same rounds: reading all files once, and the arithmetic of a pass at the speed of a large
product.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import large_model
import numpy as np
from common import (
    Goal,
    Report,
    interleave,
    machine,
    median,
    milliseconds,
    show_goals,
    show_machine,
    show_table,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

IDS = "1,2,3,4,5,6"
COMMANDS = {
    "next": ("next", "--ids", IDS),
    "attention --layer 0": ("attention", "--layer", "0", "--ids", IDS),
    "info": ("info",),
}
MOST_BYTES = 2.5e9
MOST_TIMES = 1.5
CHUNK = 1 << 24  # bytes read at once
SIDE = 3072  # of the square product that says how fast matrices are multiplied


@dataclass
class Peaks:
    """The largest memory of each command, in bytes."""

    found: dict[str, int] = field(default_factory=dict)

    def run(self, folder: Path, name: str) -> float:
        """Seconds of one command, from the start of its process to its end."""
        command = [sys.executable, "-m", "gptscope", *COMMANDS[name], "--model", str(folder)]
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            sys.exit(f"{name} failed")
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        self.found[name] = max(peak, self.found.get(name, 0))
        return seconds


def read(folder: Path) -> float:
    """Seconds to read every byte of the shards once."""
    buffer = memoryview(bytearray(CHUNK))
    started = time.perf_counter()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - started


def multiply() -> float:
    """Seconds of a pass over six tokens if every product were as fast as a large square one."""
    x = np.ones((SIDE, SIDE), np.float32)
    x @ x
    started = time.perf_counter()
    x @ x
    per_operation = (time.perf_counter() - started) / (2 * SIDE**3)
    tokens = len(IDS.split(","))
    weights = (
        sum(map(large_model.size, large_model.shapes().values())) - large_model.V * large_model.D
    )
    return 2 * tokens * weights * per_operation


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where the checkpoint is, or is put")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every sample")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and say whether the goals are met."""
    chosen = options(arguments)
    with tempfile.TemporaryDirectory() as made:
        measure(chosen, chosen.folder or Path(made) / "large")


def measure(chosen: argparse.Namespace, folder: Path) -> None:
    """All runs in turn, their table and the goals."""
    large_model.ensure(folder)
    facts, peaks = machine(), Peaks()
    runs = {name: partial(peaks.run, folder, name) for name in COMMANDS}
    beside = {"reading the files": partial(read, folder), "arithmetic": multiply}
    seconds = interleave(runs | beside, chosen.rounds, warm_ups=1, pause=0.25)
    least = sum(median(seconds[name]) for name in beside)
    show_machine(facts)
    show_table(
        "Time (medians) and peak memory",
        ("", "ms", "GB"),
        [
            (
                name,
                milliseconds(median(taken)),
                f"{peaks.found[name] / 1e9:.2f}" if name in runs else "",
            )
            for name, taken in seconds.items()
        ],
    )
    goals = [Goal("next / (reading + arithmetic)", median(seconds["next"]) / least, MOST_TIMES)]
    goals += [
        Goal(f"peak of {name} / 2.5 GB", peaks.found[name] / MOST_BYTES, 1) for name in COMMANDS
    ]
    show_goals(goals)
    if chosen.json:
        report = Report({"ids": IDS, "folder": "random"}, seconds, goals, {"peaks": peaks.found})
        write_json(chosen.json, facts, report)


if __name__ == "__main__":
    main()
