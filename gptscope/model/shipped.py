"""The models that come with the package."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

EXAMPLES: Mapping[str, str] = {  # shipped model -> a text to look at where none is given
    "tiny": "Lily wanted to play with her",
    "llama-tiny": "Lily wanted to play with her",
    "toy": "the cat eats the fish and",
    "toy-unmasked": "the cat eats the fish and",
}
PACKAGE = Path(__file__).parents[1]


@cache
def shipped_folders() -> Mapping[str, Path]:
    """Name -> folder: inside an installed package, or beside it in a checkout."""
    places = (PACKAGE / "models", PACKAGE.parent / "models")
    found = {name: p / name for name in EXAMPLES for p in reversed(places) if (p / name).is_dir()}
    return MappingProxyType(found)
