import json

import pytest

from gptscope.errors import ModelError
from gptscope.model.shipped import EXAMPLES, shipped_folders
from gptscope.model.text import Characters, read_characters

ABC = Characters(frozenset('abc "'), {"\u201c": '"', "\u2026": "ccc"})


@pytest.fixture
def file(tmp_path):
    def write(values):
        (tmp_path / "text.json").write_text(json.dumps(values), "utf-8")
        return tmp_path

    return write


def test_characters_are_mapped_and_counted():
    mapped = ABC.map("\u201cab\u201c\u2026d")
    assert mapped.text == '"ab"cccd'
    assert mapped.replaced == {"\u201c": 2, "\u2026": 1}


def test_a_text_without_any_of_them_is_the_same():
    assert ABC.map("abc\u201d").text == "abc\u201d"
    assert ABC.map("abc").replaced == {}


def test_unseen_characters_are_named_once_as_they_come():
    assert ABC.unseen("zaybz\n") == ["z", "y", "\n"]
    assert ABC.unseen('abc "') == []


def test_a_folder_that_says_nothing(tmp_path):
    assert read_characters(tmp_path) is None


def test_a_folder_that_says_what_was_seen(file):
    assert read_characters(file({"seen": "ab"})) == Characters(frozenset("ab"), {})
    both = read_characters(file({"seen": "ab", "mapped": {"\u00e4": "a"}}))
    assert both.map("\u00e4b").text == "ab"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"seen": None},
        {"seen": ["a"]},
        {"seen": "a", "mapped": []},
        {"seen": "a", "mapped": {"ab": "c"}},
        {"seen": "a", "mapped": {"": "c"}},
        {"seen": "a", "mapped": {"a": 1}},
        {"seen": "a", "mapped": {"a": "b" * 17}},
    ],
    ids=str,
)
def test_what_is_no_such_file_is_refused(file, values):
    with pytest.raises(ModelError, match=r"text\.json must hold a string `seen`"):
        read_characters(file(values))


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]", b"[" * 100_000])
def test_a_malformed_file_is_refused(tmp_path, content):
    (tmp_path / "text.json").write_bytes(content)
    with pytest.raises(
        ModelError,
        match=r"text\.json is (not|nested)",
    ):
        read_characters(tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_shipped_model_has_nothing_that_it_never_saw(name):
    characters = read_characters(shipped_folders()[name])
    assert (characters is None) == name.startswith("toy")
    assert characters is None or not characters.unseen(EXAMPLES[name])
