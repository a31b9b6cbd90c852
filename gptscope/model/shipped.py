"""The models that come with the package."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

SHIPPED = ("tiny", "toy", "toy-unmasked")
PACKAGE = Path(__file__).parents[1]


@cache
def shipped_folders() -> Mapping[str, Path]:
    """Name -> folder: inside an installed package, or beside it in a checkout."""
    places = (PACKAGE / "models", PACKAGE.parent / "models")
    found = {name: p / name for name in SHIPPED for p in reversed(places) if (p / name).is_dir()}
    return MappingProxyType(found)
