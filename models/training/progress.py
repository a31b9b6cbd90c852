"""Progress bars on standard error."""

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")


def pause() -> float:
    """Seconds between two looks of a bar: few in a terminal, many where the lines pile up."""
    return 0.2 if sys.stderr.isatty() else 30


def bar(things: Iterable[T], title: str, unit: str) -> Iterable[T]:
    """The same things, with a bar that appears after a second and leaves when done."""
    shown: Iterable[T] = tqdm(
        things, title, unit=unit, delay=1, leave=False, mininterval=pause(), dynamic_ncols=True
    )
    return shown


def token_bar(done: int, total: int, title: str = "training") -> Any:  # noqa: ANN401 - tqdm has no types
    """A bar that counts tokens, so that its rate is tokens a second."""
    return tqdm(
        desc=title,
        initial=done,
        total=total,
        unit="tok",
        unit_scale=True,
        mininterval=pause(),
        dynamic_ncols=True,
    )
