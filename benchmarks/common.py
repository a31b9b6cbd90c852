"""What the benchmarks share: the machine, turns taken in rounds, processes, tables, goals."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PACKAGES = (
    "gptscope",
    "numpy",
    "typer",
    "rich",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
)
CPU_INFO = Path("/proc/cpuinfo")
WIDTH = 160  # room for every column, whatever the terminal


@dataclass(frozen=True)
class Goal:
    """A ratio and the limit that it must keep to."""

    what: str
    value: float
    limit: float
    at_least: bool = False  # otherwise the limit is the most that is allowed

    @property
    def met(self) -> bool:
        """Whether the ratio keeps to its limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True)
class Report:
    """All that one benchmark found."""

    settings: Mapping[str, Any]
    seconds: Mapping[str, Sequence[float]]  # every sample, by the name of the run
    goals: Sequence[Goal]
    more: Mapping[str, Any]


class Worker:
    """A process of its own, which keeps what it has loaded and answers one call at a time."""

    def __init__(self, module: str) -> None:
        """Calls go to the functions of this module; it is imported in the process, not here."""
        self._module = module
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def __call__(self, function: str, *args: Any) -> Any:  # noqa: ANN401
        """What the function answers, in its process."""
        return self._pool.submit(call, self._module, function, args).result()

    def peak(self) -> int:
        """The most memory that the process has held so far, in bytes."""
        return int(self._pool.submit(peak_bytes).result())

    def __enter__(self) -> Self:
        """The worker itself."""
        return self

    def __exit__(self, *_fault: object) -> None:
        """End the process."""
        self._pool.shutdown()


def call(module: str, function: str, args: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """The function of the module, called."""
    return getattr(import_module(module), function)(*args)


def peak_bytes() -> int:
    """The most memory that this process has held, pages of mapped files included, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def interleave(
    runs: Mapping[str, Callable[[], float]], rounds: int, warm_ups: int, pause: float = 0.0
) -> dict[str, list[float]]:
    """Let all runs take turns, so that a slow moment meets all alike: name -> seconds by round."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(-warm_ups, rounds):
        for name, run in runs.items():
            time.sleep(pause)
            taken = run()
            if number >= 0:
                seconds[name].append(taken)
    return seconds


def machine() -> dict[str, str]:
    """The processor, its cores, how busy they are, the system and the versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {
        "processor": processor(),
        "cores": str(cores()),
        "memory": f"{memory:.0f} GiB",
        "load before": load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return facts | {name: installed(name) for name in PACKAGES}


def load() -> str:
    """How many processes wanted a core in the last minute, those of the run included."""
    return f"{os.getloadavg()[0]:.2f}"


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The name of the processor."""
    lines = CPU_INFO.read_text("utf-8").splitlines() if CPU_INFO.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def installed(package: str) -> str:
    """The version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def median(seconds: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(seconds)


def milliseconds(seconds: float) -> str:
    """The time for a table, in ms, with about three digits."""
    return f"{seconds * 1e3:,.{1 if seconds < 0.1 else 0}f}"


def say(line: str) -> None:
    """Tell on standard error what is being done."""
    print(line, file=sys.stderr, flush=True)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table in Markdown, the first column to the left and numbers to the right."""
    table = Table(box=MARKDOWN)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    print(f"\n{title}:")
    Console(width=WIDTH, markup=False, color_system=None).print(table)


def show_machine(facts: Mapping[str, str]) -> None:
    """The machine and the versions, in a paragraph."""
    print(", ".join(f"{name} {value}" for name, value in facts.items()))


def show_goals(goals: Sequence[Goal]) -> None:
    """Every goal, what was found, and whether it is met."""
    rows = [
        (
            goal.what,
            f"{'at least' if goal.at_least else 'at most'} {goal.limit:g}",
            f"{goal.value:.2f}",
            "yes" if goal.met else "NO",
        )
        for goal in goals
    ]
    show_table("Goals", ("ratio of medians", "goal", "found", "met"), rows)


def write_json(path: Path, facts: Mapping[str, str], report: Report) -> None:
    """All samples with the machine, the settings and the goals."""
    goals = [asdict(goal) | {"met": goal.met} for goal in report.goals]
    seconds = {name: [round(s, 6) for s in taken] for name, taken in report.seconds.items()}
    content = {"machine": facts} | asdict(report) | {"seconds": seconds, "goals": goals}
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
