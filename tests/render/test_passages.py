"""Running text on the colours of its numbers, in every format."""

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.cells import cell_len

from gptscope.render import render
from gptscope.render.screen import Screen
from gptscope.view import Passage
from tests.helpers.views import INF, NAN, NOTE, PASSAGE, lines, view

SGR = re.compile(r"\x1b\[[0-9;]*m")
LONG = Passage("", tuple(f" w{i}" for i in range(50)), [float(i) for i in range(50)])

pytestmark = pytest.mark.usefixtures("plain_terminal")


def coloured(part, width=80, **screen):
    """The lines with their escapes, and without."""
    text = render(view(part), "table", Screen(width, terminal=True, **screen))
    shown = text.removesuffix("\n").split("\n")
    return shown, [SGR.sub("", line) for line in shown]


def page(part):
    return ET.fromstring(render(view(part), "html", Screen()))  # noqa: S314


def markdown(part):
    return render(view(part), "markdown", Screen()).removesuffix("\n").split("\n\n")[-1]


# Terminals


def test_without_colours_every_token_has_its_number_under_it():
    assert lines(PASSAGE) == [
        "a passage",
        "Lily  \u00b7ran   .      \u21b5",
        "-     2.500  0.250  nan",
        "\u00b7far",
        "5.000",
    ]


@pytest.mark.parametrize(
    ("env", "screen"),
    [({"NO_COLOR": "1"}, {}), ({"TERM": "dumb"}, {}), ({}, {"colours": False})],
    ids=str,
)
def test_numbers_stand_there_wherever_colours_do_not(monkeypatch, env, screen):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    shown, _ = coloured(PASSAGE, **screen)
    assert shown[2:] == ["-     2.500  0.250  nan", "\u00b7far", "5.000"]


@pytest.mark.parametrize("width", [20, 40, 79, 80, 200, 100_000])
def test_lines_are_broken_between_tokens(width):
    shown = lines(LONG, width=width)
    assert max(map(len, shown)) <= min(width, 100)
    assert " ".join(shown[::2]).split() == [f"\u00b7w{i}" for i in range(50)]
    assert " ".join(shown[1::2]).split() == [f"{i:.2f}" for i in range(50)]


def test_a_line_that_just_fits_is_full():
    part = Passage("", ("aaaaaa", "bbbbbb", "cccc"), (1, 2, 3), "id")
    assert lines(part, width=20)[0] == "aaaaaa  bbbbbb  cccc"
    assert lines(part, width=19)[::2] == ["aaaaaa  bbbbbb", "cccc"]


@pytest.mark.parametrize("width", [20, 40, 79, 80, 200])
def test_coloured_lines_are_broken_between_tokens(width, truecolor):  # noqa: ARG001
    shown, plain = coloured(LONG, width)
    assert max(map(len, plain)) <= min(width, 100)
    text = plain[:-1]
    assert "".join(text) == "".join(f"\u00b7w{i}" for i in range(50))
    assert all(re.fullmatch(r"(\u00b7w\d+)+", line) for line in text)
    assert min(map(len, text[:-1])) > min(width, 100) - len("\u00b7w10")  # as many as fit
    assert all(line.endswith("\x1b[0m") for line in shown)
    assert re.fullmatch(r"0\.00 +49\.00", plain[-1])


def test_a_line_end_is_seen_and_breaks_the_line(truecolor):  # noqa: ARG001
    part = Passage("", ("a", "\n\n", "b;\n  ", "c"), (1.0, 2.0, 3.0, 4.0))
    assert coloured(part)[1][:-1] == ["a\u21b5", "\u21b5", "b;\u21b5", "\u00b7\u00b7c"]
    ascii_ = coloured(part, unicode=False)[1][:-1]
    assert ascii_ == ["a<0x0A>", "<0x0A>", "b;<0x0A>", "~~c"]


def test_a_token_of_two_lines_has_one_number():
    part = Passage("", ("a", "\n\n", "b;\n  ", "c"), (1.0, 2.0, 3.0, 4.0))
    assert lines(part) == [
        "a      \u21b5",
        "1.000  2.000",
        "\u21b5",
        "b;\u21b5",
        "3.000",
        "\u00b7\u00b7  c",
        "    4.000",
    ]


def test_the_strongest_has_the_strongest_colour_and_nothing_has_none(truecolor):  # noqa: ARG001
    part = Passage("", ("a", "b", "c", "d", "e"), (None, NAN, INF, 5.0, 0.0))
    assert coloured(part)[0][0] == (
        "\x1b[2ma\x1b[0m\x1b[2mb\x1b[0m\x1b[2mc\x1b[0m\x1b[38;2;0;0;0;48;2;253;231;37md\x1b[0me"
    )


def test_a_probability_has_the_whole_scale(truecolor):  # noqa: ARG001
    part = Passage("", ("a",), (0.25,), "probability")
    shown, plain = coloured(part)
    assert "48;2;59;82;139ma" in shown[0]
    assert re.fullmatch(r"0\.00 +1\.00", plain[1])


@pytest.mark.parametrize("kind", ["signed", "contribution"])
def test_both_sides_of_zero_have_colours(kind, truecolor):  # noqa: ARG001
    shown, plain = coloured(Passage("", ("a", "b"), (-2.0, 2.0), kind))
    assert "48;2;94;190;255ma" in shown[0]
    assert "48;2;255;179;71mb" in shown[0]
    assert re.fullmatch(r"-2\.000 +2\.000", plain[1])


@pytest.mark.parametrize("width", [12, 13, 20, 41])
@pytest.mark.parametrize("colours", [False, True])
def test_a_token_wider_than_a_line_is_divided(width, colours, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR" if colours else "NO_COLOR", "1")
    long = "\u6f22" * 30
    _, plain = coloured(Passage("", ("a", long, "b"), (1.0, 2.0, 3.0)), width)
    assert max(map(cell_len, plain)) <= width
    assert "".join(plain).count("\u6f22") == 30


def test_what_stands_for_a_character_is_never_divided(truecolor):  # noqa: ARG001
    _, plain = coloured(Passage("", ("ab" + "\x1b\u202e" * 20,), (1.0,)), 20)
    assert plain[:3] == ["ab<0x1B><U+202E>", "<0x1B><U+202E><0x1B>", "<U+202E><0x1B>"]


def test_control_characters_are_shown(truecolor):  # noqa: ARG001
    shown, plain = coloured(Passage("\x1b[1m", ("\x1b[31m", "\r", "\u202e", "\u0301"), [1.0] * 4))
    assert plain[0] == "<0x1B>[1m"
    assert plain[1] == "<0x1B>[31m<0x0D><U+202E><U+0301>"
    assert not set("".join(shown)) & {"\r", "\u202e", "\u0301"}


@pytest.mark.parametrize("part", [Passage("", (), ()), Passage("t", ("a",), (None,))])
def test_without_a_number_there_is_no_legend(part, truecolor):  # noqa: ARG001
    assert coloured(part)[1] == (["t", "a"] if part.title else [""])


def test_precision_is_obeyed():
    assert lines(LONG, precision=6)[1].startswith("0.0000  1.0000  ")


# Files


def test_json_has_null_where_no_number_is():
    (part,) = json.loads(render(view(PASSAGE), "json", Screen()))["parts"]
    assert part == {
        "kind": "passage",
        "title": "a passage",
        "name": "told",
        "tokens": ["Lily", " ran", ".", "\n", " far"],
        "values": [None, 2.5, 0.25, "NaN", 5.0],
    }


def test_csv_has_a_line_for_every_token():
    text = render(view(PASSAGE), "csv", Screen())
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["position", "token", "value"],
        ["0", "Lily", ""],
        ["1", " ran", "2.5"],
        ["2", ".", "0.25"],
        ["3", "\n", "nan"],
        ["4", " far", "5.0"],
    ]


def test_npz_has_values_and_tokens():
    made = render(view(PASSAGE, Passage("", (), ())), "npz", Screen())
    with np.load(io.BytesIO(made), allow_pickle=False) as arrays:
        assert list(arrays) == ["told", "told.tokens", "passage", "passage.tokens"]
        np.testing.assert_array_equal(arrays["told"], [NAN, 2.5, 0.25, NAN, 5.0])
        assert arrays["told.tokens"].tolist() == list(PASSAGE.tokens)
        assert [arrays[name].shape for name in ("passage", "passage.tokens")] == [(0,), (0,)]


def test_markdown_has_pairs():
    assert markdown(PASSAGE) == (
        "`Lily` -, `\u00b7ran` 2.500, `.` 0.250, `\u21b5` nan<br>`\u00b7far` 5.000"
    )


@pytest.mark.parametrize(
    ("token", "value", "text"),
    [
        ("", None, "\\-"),
        ("", 1.0, "1\\.000"),
        ("a|`*", 1.0, "<code>a&#124;&#96;&#42;</code> 1.000"),
    ],
)
def test_markdown_makes_nothing_else_of_a_pair(token, value, text):
    assert markdown(Passage("", (token,), (value,))) == text


def test_html_has_numbers_for_eyes_and_ears():
    root = page(PASSAGE)
    spans = root.findall(".//p[@class='passage']/span")
    assert [(one.get("class"), one.get("title")) for one in spans] == [
        ("token none", "-"),
        ("token step s32", "2.500"),
        ("token step s3", "0.250"),
        ("token step wrong", "nan"),
        ("token step s64", "5.000"),
    ]
    assert [one.text for one in spans] == ["Lily", "\u00b7ran", ".", "\u21b5", "\u00b7far"]
    assert [one.find("small").text.strip() for one in spans] == [one.get("title") for one in spans]
    assert [len(one.findall("br")) for one in spans] == [0, 0, 0, 1, 0]
    assert "".join(root.find(".//p[@class='legend']").itertext()) == "0.0005.000"


def test_html_without_numbers_has_no_legend():
    root = page(Passage("", ("a",), (None,)))
    assert root.findall(".//p[@class='legend']") == []
    assert root.find(".//div[@role='region']").get("aria-label") == "passage"


@pytest.mark.parametrize("text", ["<script>", "' onclick='x", "&amp;", "\x1b[31m", "]]>"])
def test_html_escapes_tokens(text):
    (span,) = page(Passage(text, (text,), (1.0,))).findall(".//p[@class='passage']/span")
    assert span.text == text.replace("\x1b", "<0x1B>").replace(" ", "\u00b7")
    assert set(span.keys()) == {"class", "title"}


def test_svg_has_the_colours():
    svg = render(view(PASSAGE), "svg", Screen())
    assert svg.count("<rect fill=") > render(view(NOTE), "svg", Screen()).count("<rect fill=") + 3
    assert "&#183;far" in svg
