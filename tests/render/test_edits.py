"""What was changed while the model ran is told in every format."""

import csv
import io
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from gptscope.render import render
from gptscope.render.screen import Screen
from gptscope.view import View
from tests.helpers.views import EDITS, INPUT, NOTE

CHANGED = "changed: layers.2.heads.*.out=zero, layers.0.mlp_act[:,17]=0"
HOSTILE = ("\x1b[31m", "a\nb", "<b>*x*</b>", "\u202e")

pytestmark = pytest.mark.usefixtures("plain_terminal")


def made(fmt, edits=EDITS, given=INPUT, screen=None):
    return render(View("test", (NOTE,), {"name": "m"}, given, edits), fmt, screen or Screen(100))


def test_it_stands_under_what_was_fed():
    fed = "m \u00b7 2 tokens: 1 2 (nothing prepended)"
    assert made("table").split("\n") == [fed, CHANGED, "", "A note.", ""]
    assert made("markdown").split("\n\n")[1:3] == [
        fed,
        "changed: layers.2.heads.\\*.out=zero, layers.0.mlp_act\\[:,17\\]=0",
    ]


def test_it_stands_there_without_an_input():
    assert made("table", given=None).split("\n") == [CHANGED, "", "A note.", ""]
    assert "\n\nchanged: " in made("markdown", given=None)
    assert CHANGED in made("html", given=None)


def test_without_edits_nothing_is_told():
    assert all("changed:" not in made(fmt, ()) for fmt in ("table", "markdown"))
    assert 'class="changed"' not in made("html", ())
    with np.load(io.BytesIO(made("npz", ()))) as arrays:
        assert "edits" not in arrays


def test_it_stands_out(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert f"\x1b[1m{CHANGED}\x1b[0m" in made("table")


def test_it_is_wrapped():
    shown = made("table", EDITS * 9, screen=Screen(40)).split("\n")
    assert max(map(len, shown)) <= 40
    assert "".join(shown).count("=zero") == 9


@pytest.mark.parametrize("fmt", ["table", "markdown", "html", "svg"])
def test_it_is_never_sent_to_the_terminal(fmt):
    text = made(fmt, HOSTILE)
    assert not set(text) & {"\x1b", "\u202e"}
    assert any(shown in text for shown in ("<0x1B>", "&lt;0x1B&gt;", "&#60;0x1B>"))


def test_table_keeps_hostile_edits_in_one_line():
    first = made("table", HOSTILE, None).split("\n")[0]
    assert first == "changed: <0x1B>[31m, a<0x0A>b, <b>*x*</b>, <U+202E>"


def test_html_has_a_line_of_its_own():
    root = ET.fromstring(made("html", HOSTILE))  # noqa: S314
    (line,) = root.findall(".//p[@class='changed']")
    assert line.text == "changed: <0x1B>[31m, a<0x0A>b, <b>*x*</b>, <U+202E>"


def test_json_has_them_as_they_are():
    assert json.loads(made("json", HOSTILE))["edits"] == list(HOSTILE)


def test_npz_has_them():
    with np.load(io.BytesIO(made("npz", HOSTILE)), allow_pickle=False) as arrays:
        assert list(arrays) == ["ids", "tokens", "edits"]
        assert arrays["edits"].tolist() == list(HOSTILE)


def test_csv_has_only_data():
    assert list(csv.reader(io.StringIO(made("csv")))) == []
