from xml.etree import ElementTree as ET

import pytest

from gptscope.render.as_svg import render
from gptscope.render.screen import Screen
from gptscope.view import Note
from tests.helpers.views import EVERYTHING, INF, NAN, grid, view

WIDE = Screen(100_000)


def words(*parts):
    svg = render(view(*parts), WIDE)
    return [text.replace("\xa0", " ") for text in ET.fromstring(svg).itertext()]  # noqa: S314


def test_it_is_the_same_whatever_the_screen_can_show(monkeypatch):
    svg = render(EVERYTHING, WIDE)
    assert render(EVERYTHING, Screen(80, terminal=True)) == svg
    assert render(EVERYTHING, Screen(80, unicode=False)) == svg
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, "1")
        assert render(EVERYTHING, WIDE) == svg
    monkeypatch.setenv("TERM", "dumb")
    assert render(EVERYTHING, WIDE) == svg


def test_it_is_never_wider_than_80_columns():
    width = [ET.fromstring(render(EVERYTHING, Screen(n))).get("viewBox") for n in (80, 200, 40)]  # noqa: S314
    assert width[0] == width[1] != width[2]


def test_theme_and_precision_are_obeyed():
    part = view(grid([[1.23456]], kind="signed"))
    plain = render(part, WIDE)
    assert plain != render(part, Screen(light=True))
    assert "1.235" in plain
    assert "1.2<" in render(part, Screen(precision=2))


def test_it_needs_nothing_from_elsewhere():
    svg = render(EVERYTHING, WIDE)
    assert svg.count("http") == 1
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert svg.count("url(") == svg.count("url(#gptscope-")
    assert "clip-path" not in svg  # nothing is cut where a font is wider than expected
    assert "@import" not in svg
    assert "@font-face" not in svg


def test_it_has_colours_and_the_name_of_the_command():
    svg = render(view(grid([[1.0, 0.5]])), WIDE)
    assert svg.count("<rect fill=") > 2
    assert "gptscope test" in "".join(words())


@pytest.mark.parametrize("text", ["<b>&amp;</b>", "]]>", "\u6f22 \U0001f469"])
def test_text_stays_text(text):
    assert text in "".join(words(Note(text)))


def test_control_characters_are_shown():
    assert "<0x1B>[31m<0x00>" in "".join(words(Note("\x1b[31m\x00")))


def test_infinities_and_nothing():
    seen = "".join(words(grid([[INF, -INF, NAN, 1.0]], kind="signed")))
    assert all(part in seen for part in ("inf", "-inf", "-", "1.000"))
