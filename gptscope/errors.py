"""Mistakes that a user can make and mend, and the exit statuses they lead to."""

from enum import IntEnum


class Status(IntEnum):
    """How the program ends."""

    DONE = 0
    FAILED = 1  # the request could not be met: a bad file, a bad model
    USAGE = 2  # the request itself is wrong
    INTERRUPTED = 130


class GptscopeError(Exception):
    """A fault outside the program, told in one sentence, with a hint where there is one."""

    status = Status.FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        """Keep the sentence and the hint apart, so that each is printed in its own line."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class ModelError(GptscopeError):
    """A model that cannot be found, read or understood."""


class UsageError(GptscopeError, ValueError):
    """A request that no model could meet, or not this one: out of range, empty, too long."""

    status = Status.USAGE


class NotFiniteWarning(UserWarning):
    """The weights hold NaN or infinities, and so will what is computed from them."""


def check_index(what: str, index: int, count: int) -> int:
    """`index` counted from the start (-1 is the last), or an error that says the range.

    Raises:
        UsageError: the index is outside 0 .. count - 1 and outside -count .. -1.
    """
    if not -count <= index < count:
        msg = f"{what} {index} is out of range: this one has {what}s 0 to {count - 1}"
        raise UsageError(msg)
    return index % count


class ClosedPipe(Exception):  # noqa: N818 - nothing is wrong
    """Whoever read the output has stopped: end quietly."""
