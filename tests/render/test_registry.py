import subprocess
import sys
from importlib import import_module

import pytest

from gptscope.render import BINARY, ENDINGS, RENDERERS, render
from gptscope.render.screen import Screen
from gptscope.view import Sheet
from tests.helpers.views import EVERYTHING, FACTS, GRID, LENS, NOTE, PASSAGE, TABLE, view

SHEET = Sheet("a sheet", (GRID, GRID), 2)
PARTS = {
    "table": TABLE,
    "grid": GRID,
    "lens": LENS,
    "sheet": SHEET,
    "passage": PASSAGE,
    "facts": FACTS,
    "note": NOTE,
}


def test_the_formats():
    assert list(RENDERERS) == ["table", "json", "csv", "markdown", "html", "svg", "npz"]
    assert set(ENDINGS.values()) == set(RENDERERS)
    assert set(RENDERERS) >= BINARY


@pytest.mark.parametrize("fmt", RENDERERS)
def test_a_format_is_a_module_with_render(fmt):
    module = import_module(f"gptscope.render.{RENDERERS[fmt]}")
    assert render(EVERYTHING, fmt, Screen()) == module.render(EVERYTHING, Screen())


@pytest.mark.parametrize("fmt", RENDERERS)
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_every_format_takes_every_kind_of_part_alone(fmt, part):
    made = render(view(part), fmt, Screen())
    assert isinstance(made, bytes if fmt in BINARY else str)
    if fmt not in BINARY and not (fmt == "csv" and part is NOTE):  # a note holds no data
        assert made.endswith("\n")


@pytest.mark.parametrize("fmt", RENDERERS)
def test_every_format_takes_a_view_without_parts(fmt):
    assert isinstance(render(view(), fmt, Screen()), bytes if fmt in BINARY else str)


@pytest.mark.parametrize("fmt", RENDERERS)
def test_rendering_changes_nothing(fmt):
    before = repr(EVERYTHING)
    assert render(EVERYTHING, fmt, Screen()) == render(EVERYTHING, fmt, Screen())
    assert repr(EVERYTHING) == before


def test_only_the_terminal_needs_rich():
    code = """
import sys
from gptscope.render import BINARY, ENDINGS, RENDERERS, render
from gptscope.render.screen import Screen
from tests.helpers.views import EVERYTHING
for fmt in ("json", "csv", "markdown", "html", "npz", "table"):
    render(EVERYTHING, fmt, Screen())
    print(fmt, "rich" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    *others, table, _ = done.stdout.decode().split("\n")
    assert [line.split()[1] for line in others] == ["False"] * 5
    assert table == "table True"
