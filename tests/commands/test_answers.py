import numpy as np
import pytest

import gptscope
from gptscope.commands.answers import (
    answer_id,
    drawable,
    first_token,
    likeliest,
    shown_as,
    single,
    wanted,
)
from gptscope.errors import GptscopeError, UsageError
from gptscope.glyphs import token_glyphs
from gptscope.tokens import Tokenizer
from tests.helpers.families import family_folder
from tests.helpers.made_tokenizers import KINDS


@pytest.fixture(scope="module")
def bare():
    return gptscope.load(family_folder("gpt2"))


@pytest.fixture(scope="module")
def kinds():
    return {name: Tokenizer(make()) for name, make in KINDS.items()}


# By its id


@pytest.mark.parametrize("text", ["<id 5>", "<id 0>", "<id 42>"])
def test_an_id_in_brackets_is_an_id_everywhere(bare, tiny, text):
    expected = int(text[4:-1])
    assert answer_id(bare, text) == answer_id(tiny, text) == expected


def test_a_number_is_an_id_only_where_there_is_no_text(bare, tiny, capsys):
    assert answer_id(bare, "5") == 5
    assert tiny.tokenizer.text_of(answer_id(tiny, "5")) == "5"
    assert answer_id(tiny, "5") != 5
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["<id 4096>", "<id 99999>"])
def test_an_id_that_the_model_does_not_have(tiny, text):
    with pytest.raises(UsageError, match=f"token id {text[4:-1]} is outside the vocabulary"):
        answer_id(tiny, text)


@pytest.mark.parametrize("text", [" mom", "", "-1", "<id x>"])
@pytest.mark.parametrize("option", ["--answer", "TOKEN"])
def test_without_a_tokenizer_it_is_said_how_to_write_one(bare, text, option):
    with pytest.raises(UsageError, match="so a token is given by its id") as why:
        answer_id(bare, text, option)
    assert why.value.message.startswith(f"{option} {text!r}: ")
    last = bare.spec.n_vocab - 1
    assert why.value.hint == f"an id from 0 to {last}: {last}, or '<id {last}>'"
    assert answer_id(bare, f"<id {last}>") == answer_id(bare, str(last)) == last


# By its text


def test_an_empty_text(tiny):
    with pytest.raises(UsageError, match="--against is empty"):
        answer_id(tiny, "", "--against")


@pytest.mark.parametrize(
    ("text", "expected", "told"),
    [
        ("qzj", "q", "warning: --answer 'qzj' is 3 tokens, 'q', 'z', 'j': the first is looked at"),
        ("happy", " happy", "note: --answer is ' happy' (id 385): 'happy' is no single token"),
        (" king", " king", "note: --answer is ' king' (id 1936); 'king' is another token, 580"),
        ("king", "king", "note: --answer is 'king' (id 580); ' king' is another token, 1936"),
        (" happy", " happy", ""),
    ],
)
def test_which_token_a_text_is(tiny, capsys, text, expected, told):
    found = answer_id(tiny, text)
    assert tiny.tokenizer.text_of(found) == expected
    assert capsys.readouterr().err == (f"{told}\n" if told else "")


def test_half_a_character_is_refused(tiny):
    with pytest.raises(UsageError, match=r"character 1 of the text \(U\+DCFF\)"):
        answer_id(tiny, "a\udcff")


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "a\nb"])
def test_what_is_told_cannot_move_the_cursor(tiny, capsys, text):
    answer_id(tiny, text)
    line = capsys.readouterr().err
    assert line.startswith("warning: ")
    assert line.count("\n") == 1
    assert not {"\x1b", "\u202e"} & set(line)


# As tables show it


@pytest.mark.parametrize(
    ("shown", "text"), [("\u00b7happy", " happy"), ("\u21b5", "\n"), ("<0x0A>", "\n")]
)
def test_a_token_copied_from_a_table(tiny, capsys, shown, text):
    found = answer_id(tiny, shown)
    assert tiny.tokenizer.text_of(found) == text
    said = f"note: --answer is {text!r} (id {found}), which tables show as {shown!r}\n"
    assert capsys.readouterr().err == said


def test_a_byte_that_is_no_character(tiny):
    found = answer_id(tiny, "<0xC3>")
    assert tiny.tokenizer.bytes_of(found) == b"\xc3"


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_is_found_as_it_is_shown(kinds, kind):
    tokenizer = kinds[kind]
    copied = 0
    for i in range(tokenizer.size):
        shown = token_glyphs(tokenizer.text_of(i))
        if shown == tokenizer.text_of(i) and not shown.startswith("<0x"):
            continue
        copied += 1
        found = first_token(tokenizer, shown, "--answer")
        assert tokenizer.bytes_of(found) == tokenizer.bytes_of(i)
    assert (copied > 0) == (kind != "word_level")


def test_a_byte_of_llama_is_its_own_token(kinds):
    tokenizer = kinds["llama"]
    assert tokenizer.bytes_of(shown_as(tokenizer, "<0x41>")) == b"A"
    assert shown_as(tokenizer, "<0x41>") == 3 + 0x41


@pytest.mark.parametrize("text", ["mom", " mom", "<0xG1>", "<U+110000>", ""])
def test_what_is_no_glyph_is_not_read_as_one(tiny, text):
    assert shown_as(tiny.tokenizer, text) is None


def test_a_text_as_it_stands_goes_first():
    tokenizer = Tokenizer(KINDS["byte_level"](vocab_size=2000))
    inner = tokenizer._tokenizer  # noqa: SLF001
    inner.add_tokens(["\u00b7the"])
    tokenizer = Tokenizer(inner)
    found = first_token(tokenizer, "\u00b7the", "--answer")
    assert tokenizer.text_of(found) == "\u00b7the"
    assert single(tokenizer, " the") not in {None, found}


# The likeliest


def test_the_likeliest():
    assert likeliest(np.array([0.5, -np.inf, 2.0, 2.0]), "here") == 2


@pytest.mark.parametrize(
    ("logits", "what"),
    [
        ([0.5, np.nan], "NaN"),
        ([np.inf, np.nan], "NaN"),
        ([0.5, np.inf], "infinity"),
        ([-np.inf, -np.inf], "-infinity alone"),
    ],
)
def test_logits_that_are_no_numbers(logits, what):
    assert not drawable(np.array(logits))
    with pytest.raises(GptscopeError, match=f"^the logits after token 3 hold {what}, so no token"):
        likeliest(np.array(logits), "after token 3")


# How often each token counts


@pytest.mark.parametrize(
    ("best", "answer", "against", "expected"),
    [
        ([3], None, None, {3: 1.0}),
        ([3, 4], None, None, {3: 1.0, 4: -1.0}),
        ([3, 3], None, None, {3: 1.0}),
        ([3, 4], "<id 5>", None, {5: 1.0}),
        ([3, 4], None, "<id 5>", {3: 1.0, 5: -1.0}),
        ([3], "<id 5>", "<id 3>", {5: 1.0, 3: -1.0}),
    ],
)
def test_how_often_a_token_counts(bare, best, answer, against, expected):
    found = wanted(bare, best, answer, against)
    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("answer", [None, "<id 3>"])
def test_a_token_against_itself(bare, answer):
    with pytest.raises(UsageError, match=r"^the answer and --against are the same token, 3$"):
        wanted(bare, [3], answer, "<id 3>")
