import io
import json
import unicodedata
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gptscope.glyphs import UNSAFE, UNSEEN
from gptscope.render import render
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Grid, Note, Passage, Sheet, Table, View

TEXT = st.text(max_size=40)
NUMBER = st.none() | st.floats(width=32) | st.integers(-(10**6), 10**6)
PROBABILITY = st.none() | st.floats(0, 1, width=32) | st.just(np.float32("nan"))
VALUES = {
    "text": st.none() | TEXT,
    "token": TEXT,
    "probability": PROBABILITY,
    "signed": NUMBER,
    "contribution": NUMBER,
    "length": NUMBER,
    "number": NUMBER,
    "count": st.none() | st.integers(),
    "vector": st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5))
    rows = draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), max_size=4))
    return Table(draw(TEXT), tuple(Column(draw(TEXT), kind) for kind in kinds), rows)


@st.composite
def grids(draw):
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    numbers = draw(st.lists(st.floats(width=32), min_size=n * m, max_size=n * m))
    labels = [tuple(draw(st.lists(TEXT, min_size=k, max_size=k))) for k in (n, m)]
    kinds = draw(st.sampled_from(["probability", "signed", "length", "contribution"]))
    masks = st.lists(st.booleans(), min_size=n * m, max_size=n * m)
    mask = draw(st.none() | masks)
    hidden = None if mask is None else np.reshape(mask, (n, m))
    rows = st.lists(TEXT, min_size=m, max_size=m).map(tuple)
    tokens = draw(st.none() | st.lists(rows, min_size=n, max_size=n).map(tuple))
    values = np.reshape(numbers, (n, m))
    return Grid(draw(TEXT), *labels, values, kinds, hidden=hidden, tokens=tokens)


@st.composite
def passages(draw):
    pairs = draw(st.lists(st.tuples(TEXT, NUMBER), max_size=9))
    kind = draw(st.sampled_from(["probability", "signed", "length", "contribution"]))
    return Passage(draw(TEXT), tuple(t for t, _ in pairs), [v for _, v in pairs], kind)


PAIRS = st.lists(st.tuples(st.builds(Column, TEXT), TEXT), min_size=1, max_size=4)
SHEETS = st.builds(
    Sheet, TEXT, st.lists(grids(), min_size=1, max_size=3).map(tuple), st.integers(1, 3)
)
FACTS = st.builds(Facts, TEXT, PAIRS.map(tuple))
PARTS = tables() | grids() | SHEETS | passages() | FACTS | st.builds(Note, TEXT)
EDITS = st.lists(TEXT, max_size=2).map(tuple)


def unsafe(text):
    return [
        c for c in text if c not in "\n " and (unicodedata.category(c) in UNSAFE or c in UNSEEN)
    ]


@given(PARTS, st.integers(12, 120), st.booleans())
def test_no_part_is_wider_than_the_screen_or_moves_the_cursor(part, width, unicode):
    text = render(View("test", (part,)), "table", Screen(width, unicode=unicode))
    assert [line for line in text.split("\n") if cell_len(line) > width] == []
    assert unsafe(text) == []


@pytest.mark.parametrize("fmt", ["json", "csv", "markdown", "html", "svg"])
@given(part=PARTS, edits=EDITS)
def test_no_format_sends_control_characters(fmt, part, edits):
    text = render(View("test", (part,), edits=edits), fmt, Screen())
    assert unsafe(text) == []
    if fmt == "json":
        json.loads(text)
    if fmt in ("svg", "html"):
        ET.fromstring(text)  # noqa: S314 - what this program wrote


@given(PARTS)
def test_npz_loads_without_running_anything(part):
    made = render(View("test", (part,)), "npz", Screen())
    with np.load(io.BytesIO(made), allow_pickle=False) as arrays:
        kinds = {arrays[name].dtype.kind for name in arrays}
    assert kinds <= set("ifUb")
    assert render(View("test", (part,)), "npz", Screen()) == made
