import subprocess
import sys
from importlib import import_module

import pytest

from gptscope.render import RENDERERS, render
from gptscope.render.screen import Screen
from tests.helpers.views import EVERYTHING, FACTS, GRID, NOTE, TABLE, view

PARTS = {"table": TABLE, "grid": GRID, "facts": FACTS, "note": NOTE}


def test_the_formats():
    assert list(RENDERERS) == ["table", "json", "csv", "svg"]


@pytest.mark.parametrize("fmt", RENDERERS)
def test_a_format_is_a_module_with_render(fmt):
    module = import_module(f"gptscope.render.{RENDERERS[fmt]}")
    assert render(EVERYTHING, fmt, Screen()) == module.render(EVERYTHING, Screen())


@pytest.mark.parametrize("fmt", RENDERERS)
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_every_format_takes_every_kind_of_part_alone(fmt, part):
    text = render(view(part), fmt, Screen())
    if not (fmt == "csv" and part is NOTE):  # a note holds no data
        assert text.endswith("\n")


@pytest.mark.parametrize("fmt", RENDERERS)
def test_every_format_takes_a_view_without_parts(fmt):
    assert isinstance(render(view(), fmt, Screen()), str)


@pytest.mark.parametrize("fmt", RENDERERS)
def test_rendering_changes_nothing(fmt):
    before = repr(EVERYTHING)
    assert render(EVERYTHING, fmt, Screen()) == render(EVERYTHING, fmt, Screen())
    assert repr(EVERYTHING) == before


def test_only_the_terminal_needs_rich():
    code = """
import sys
from gptscope.render import RENDERERS, render
from gptscope.render.screen import Screen
from tests.helpers.views import EVERYTHING
for fmt in ("json", "csv", "table"):
    render(EVERYTHING, fmt, Screen())
    print(fmt, "rich" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().split("\n")[:3] == ["json False", "csv False", "table True"]
