import numpy as np
import pytest

from gptscope.analysis.tensors import (
    beginning,
    by_kind,
    by_pattern,
    guess,
    held,
    kind,
    matching,
    pattern,
    place,
    stored_bytes,
)
from gptscope.model.dtypes import DTYPES
from gptscope.model.formats.packed import Grouped, Packed, Reordered

PACKED = Packed(np.zeros((6, 18), np.uint8), (6, 32), lambda rows: np.zeros((len(rows), 32)))
GROUPED = Grouped(np.zeros((6, 32), np.int8), np.zeros((6, 8), np.float32))


@pytest.mark.parametrize("name", DTYPES)
def test_every_kind_of_number_has_its_name(name):
    table = np.zeros((3, 4), DTYPES[name])
    assert (kind(table), stored_bytes(table)) == (name, table.nbytes)


@pytest.mark.parametrize(
    ("table", "n_bytes", "name"),
    [(PACKED, 108, "packed, 4.5 bits"), (GROUPED, 384, "grouped, 16 bits")],
)
def test_packed_numbers_are_told_by_their_density(table, n_bytes, name):
    for one in (table, Reordered(table, np.arange(6))):
        assert (stored_bytes(one), kind(one), held([one]).numbers) == (n_bytes, name, 192)


def test_kinds_come_with_the_most_numbers_first():
    arrays = {"a": np.zeros(3, "f2"), "b": np.zeros((2, 2), "f4"), "c": np.zeros(3, "f2")}
    found = by_kind(arrays)
    assert list(found) == ["F16", "F32"]
    assert (found["F16"].tensors, found["F16"].numbers, found["F16"].bytes) == (2, 6, 12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h.12.ln_1.bias", "h.*.ln_1.bias"),
        ("layers.0.experts.7.w1", "layers.*.experts.*.w1"),
        ("fc1.weight", "fc1.weight"),
        ("3", "*"),
        ("", ""),
        ("a.0\n.b", "a.0\n.b"),
    ],
)
def test_a_star_stands_for_a_number_between_dots(name, expected):
    assert pattern(name) == expected


def test_names_alike_are_together_in_the_order_of_the_file():
    names = ["h.1.w", "top", "h.0.w", "h.0.b"]
    assert by_pattern(names) == {"h.*.w": ["h.1.w", "h.0.w"], "top": ["top"], "h.*.b": ["h.0.b"]}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["wte"], ""),
        (["a.b.wte", "a.b.h.0.w"], "a.b."),
        (["a.h.0.w", "a.h.0.b"], "a.h."),
        (["a.w", "ab.w"], ""),
        (["a.w", "a"], ""),
    ],
)
def test_what_all_names_begin_with(names, expected):
    assert beginning(names) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h.0.attn.c_proj.weight", "attention"),
        ("layers.0.self_attn.q_norm.weight", "attention"),
        ("layers.0.self_attn_layer_norm.bias", "norms"),
        ("layers.0.post_attention_layernorm.weight", "norms"),
        ("ln_f.bias", "norms"),
        ("word_embeddings_layernorm.weight", "norms"),
        ("layers.0.fc1.bias", "feed-forward"),
        ("lm_head.weight", "output"),
        ("something.else", "in use"),
    ],
)
def test_a_name_says_which_part_a_tensor_is_of(name, expected):
    assert place(name) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("*", ["a[1].b", "a1.b", "A1.b", "x\ny"]),
        ("a[1]*", ["a[1].b"]),
        ("a?.b", []),
        ("*b", ["a[1].b", "a1.b", "A1.b"]),
        ("x*y", ["x\ny"]),
        ("a1.b", ["a1.b"]),
    ],
)
def test_only_a_star_stands_for_something_else(wanted, expected):
    assert matching(["a[1].b", "a1.b", "A1.b", "x\ny"], wanted) == expected


def test_sizes_are_guessed_from_names_and_shapes():
    shapes = {"wte": (50, 8), "h.0.a": (8, 24), "h.3.a": (8, 24), "h.3.b": (8,), "f": (8,)}
    found = guess(shapes)
    assert (found.layers, found.width, found.vocabulary) == (4, 8, 50)
    assert guess({}) == guess({"a": ()})
