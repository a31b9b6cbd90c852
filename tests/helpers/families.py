"""Folders of the micro models whose golden values are transformers', written when asked for."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from gptscope.model.families import FAMILIES
from tests.golden.transformers.cases import CASES
from tests.golden.transformers.weights import write_folder

HOME = TemporaryDirectory(prefix="gptscope-families-")  # goes when the tests end


@cache
def family_folder(name: str) -> str:
    """The folder of a case."""
    return str(write_folder(name, Path(HOME.name) / name))


def one_of_each() -> list[str]:
    """The first case of every family that there is."""
    first = {case.family: case.name for case in reversed(CASES) if case.family in FAMILIES}
    return sorted(first.values())
