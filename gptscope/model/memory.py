"""How much memory there is."""

import os

SHARE = 4  # a quarter of what is free may hold widened blocks
UNKNOWN = 1 << 30  # bytes, where the system does not say


def room() -> int:
    """Bytes that may be taken to save time."""
    return free() // SHARE


def free() -> int:
    """Bytes of memory that are free, or can be given back by the system at once."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123 - no file of a user
            told = dict(line.split(":") for line in file)
        return int(told["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return UNKNOWN
