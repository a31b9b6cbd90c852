import io
import os

import pytest

from gptscope.render.screen import GLYPHS, UNBOUNDED, Screen, can_encode, screen_of


@pytest.fixture(autouse=True)
def _unknown_background(monkeypatch):
    monkeypatch.delenv("COLORFGBG", raising=False)


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def stream(encoding="utf-8", kind=io.TextIOWrapper):
    return kind(io.BytesIO(), encoding)


@pytest.mark.parametrize(
    ("columns", "width"), [("40", 40), ("120", 120), ("", UNBOUNDED), ("0", UNBOUNDED)]
)
@pytest.mark.parametrize("odd", ["", "x", "-5", "1.5"])
def test_a_pipe_is_as_wide_as_columns_says_or_has_no_edge(monkeypatch, columns, width, odd):
    monkeypatch.setenv("COLUMNS", columns)
    assert screen_of(stream()) == Screen(width, terminal=False, unicode=True)
    monkeypatch.setenv("COLUMNS", odd)
    assert screen_of(stream()).width == UNBOUNDED


def test_a_terminal_is_as_wide_as_columns_says(monkeypatch):
    monkeypatch.setenv("COLUMNS", "33")
    assert screen_of(stream(kind=Terminal)) == Screen(33, terminal=True, unicode=True)


def test_a_terminal_that_does_not_say_has_80_columns(monkeypatch):
    def unknown(_):
        raise OSError

    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", unknown)
    assert screen_of(stream(kind=Terminal)).width == 80


@pytest.mark.parametrize(
    ("encoding", "unicode"),
    [("utf-8", True), ("utf-16", True), ("ascii", False), ("cp1252", False), ("latin-1", False)],
)
def test_glyphs_are_drawn_where_the_encoding_has_them_all(encoding, unicode):
    assert screen_of(stream(encoding)).unicode == unicode
    assert can_encode(stream(encoding), GLYPHS) == unicode
    assert can_encode(stream(encoding), "plain")


def test_a_stream_without_an_encoding_is_ascii():
    assert not can_encode(io.StringIO(), GLYPHS)


@pytest.mark.parametrize(
    ("unicode", "encoding", "charset"),
    [
        (True, "utf-8", "utf-8"),
        (False, "utf-8", "ascii"),  # plain characters were asked for
        (False, "cp1252", "cp1252"),
        (False, "ascii", "ascii"),
    ],
)
def test_text_is_written_in_what_the_encoding_has_or_as_was_asked(unicode, encoding, charset):
    assert Screen(80, unicode=unicode, encoding=encoding).charset == charset


def test_a_screen_knows_its_encoding():
    assert screen_of(stream("cp1252")).charset == "cp1252"
    assert screen_of(stream("utf-8")).charset == "utf-8"


@pytest.mark.parametrize(
    ("value", "light"),
    [
        ("0;15", True),
        ("0;default;15", True),
        ("0;7", True),
        ("15;0", False),
        ("15;8", False),
        ("12;6", False),
        ("15;default", False),
        ("0;16", False),
        ("", False),
        ("x", False),
        (";", False),
    ],
)
def test_colorfgbg_tells_the_background(monkeypatch, value, light):
    monkeypatch.setenv("COLORFGBG", value)
    assert screen_of(stream()).light == light


def test_a_background_that_is_not_told_is_dark():
    assert not screen_of(stream(kind=Terminal)).light
