import json

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from gptscope.errors import UsageError
from gptscope.model.shipped import shipped_folders
from gptscope.tokens import (
    Decoder,
    Encoded,
    Token,
    Tokenizer,
    byte_alphabet,
    first_change,
    from_json,
)
from tests.helpers.made_tokenizers import KINDS, byte_level, llama, word_level

TINY = shipped_folders()["tiny"] / "tokenizer.json"
SNOWMAN = "\u2603"  # three bytes: E2 98 83


@pytest.fixture(scope="module")
def tokenizer():
    return from_json(TINY)


@pytest.fixture
def changed(tmp_path):
    # The shipped tokenizer with other settings.
    def load(**settings):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(json.loads(TINY.read_text("utf-8")) | settings), "utf-8")
        return from_json(path)

    return load


@pytest.fixture(scope="module")
def words():
    # Whole words, so that a piece is text and not bytes in disguise.
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"caf\u00e9": 0, "un": 1, "?": 2}, unk_token="?")  # noqa: S106
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return Tokenizer(inner)


def test_the_example_of_the_lesson(tokenizer):
    ids = tokenizer.encode("Lily wanted to play with her")
    assert len(ids) == 6
    assert [tokenizer.text_of(i) for i in ids] == [
        "Lily",
        " wanted",
        " to",
        " play",
        " with",
        " her",
    ]


def test_a_token_tells_its_place_in_bytes(tokenizer):
    ids = tokenizer.encode(f"a{SNOWMAN} b")
    tokens = tokenizer.tokens(ids)
    assert [token.id for token in tokens] == ids
    assert tokens[0] == Token(ids[0], "a", b"a", 0, 1, special=False)
    assert tokens[-1] == Token(ids[-1], " b", b" b", 4, 6, special=False)
    assert tokenizer.tokens([]) == []


def test_bytes_that_are_no_whole_character(tokenizer):
    ids = tokenizer.encode(SNOWMAN)
    assert len(ids) == 3
    assert [tokenizer.text_of(i) for i in ids] == ["<0xE2>", "<0x98>", "<0x83>"]
    assert [tokenizer.bytes_of(i) for i in ids] == [b"\xe2", b"\x98", b"\x83"]
    assert tokenizer.decode(ids) == SNOWMAN
    assert tokenizer.decode(ids[:2]) == "<0xE2><0x98>"


def test_every_byte_has_a_token(tokenizer):
    found = {tokenizer.bytes_of(i) for i in range(4096)}
    assert {bytes([b]) for b in range(256)} <= found


def test_special_tokens(tokenizer):
    end = tokenizer.encode("<|endoftext|>")
    assert end == [0]
    assert tokenizer.text_of(0) == "<|endoftext|>"
    assert tokenizer.bytes_of(0) == b"<|endoftext|>"
    assert [token.special for token in tokenizer.tokens([0, 1, 300])] == [True, False, False]


def test_an_id_without_a_token(tokenizer):
    assert tokenizer.text_of(50_300) == "<id 50300>"
    assert tokenizer.bytes_of(50_300) == b""
    assert tokenizer.decode([50_300]) == ""


@pytest.mark.parametrize("wrong", [-1, 2**32])
def test_an_id_that_no_vocabulary_could_have(tokenizer, wrong):
    assert tokenizer.text_of(wrong) == f"<id {wrong}>"


@pytest.mark.parametrize(("text", "at", "code"), [("\ud83d", 0, "D83D"), ("ab\udc00c", 2, "DC00")])
def test_half_a_character_is_refused(tokenizer, text, at, code):
    why = rf"character {at} of the text \(U\+{code}\) is not valid Unicode"
    with pytest.raises(UsageError, match=why):
        tokenizer.encode(text)


def test_an_empty_text(tokenizer):
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""


def test_line_ends_are_not_changed(tokenizer):
    for text in ("a\r\nb", "a\rb", "\n\n", " \t "):
        assert tokenizer.decode(tokenizer.encode(text)) == text


# What other tokenizers do


BEGIN = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {
        "<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}
    },
}


def test_what_the_rules_put_before_a_text_is_told(changed, tokenizer):
    begins = changed(post_processor=BEGIN)
    plain = tokenizer.encode("Lily")
    assert begins.encode("Lily") == [0, *plain]
    assert begins.encoded("Lily") == Encoded([0, *plain], prepended=1, appended=0)
    assert tokenizer.encoded("Lily") == Encoded(plain, prepended=0, appended=0)
    with pytest.raises(TypeError, match="bare"):
        begins.encode("Lily", bare=True)


def test_what_the_rules_put_after_a_text_is_told(changed, tokenizer):
    ends = changed(post_processor=BEGIN | {"single": BEGIN["single"][::-1]})
    plain = tokenizer.encode("Lily")
    assert ends.encoded("Lily") == Encoded([*plain, 0], prepended=0, appended=1)


def test_a_special_token_that_was_written_counts_as_text(changed, tokenizer):
    assert tokenizer.encoded("<|endoftext|>") == Encoded([0], prepended=0, appended=0)
    begins = changed(post_processor=BEGIN)
    assert begins.encoded("<|endoftext|>") == Encoded([0, 0], prepended=1, appended=0)


def test_a_text_is_never_cut(changed, tokenizer):
    cut = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    text = "Lily wanted to play with her"
    assert changed(truncation=cut).encode(text) == tokenizer.encode(text)


def test_a_text_is_never_padded(changed, tokenizer):
    pad = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<|endoftext|>",
    }
    assert changed(padding=pad).encode("Lily") == tokenizer.encode("Lily")


def test_added_tokens_that_are_not_special(changed):
    added = {
        "id": 0,
        "content": "caf\u00e9",
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": False,
    }
    tokenizer = changed(added_tokens=[added])
    token = tokenizer.tokens(tokenizer.encode("caf\u00e9"))[0]
    assert (token.bytes, token.special) == ("caf\u00e9".encode(), False)


def test_a_tokenizer_of_whole_words(words):
    ids = words.encode("caf\u00e9 un")
    assert ids == [0, 1]
    assert [words.text_of(i) for i in ids] == ["caf\u00e9", "un"]
    assert words.bytes_of(0) == "caf\u00e9".encode()


# Streaming


def test_a_character_comes_out_with_its_last_byte(tokenizer):
    decoder = Decoder(tokenizer)
    ids = tokenizer.encode(f"a{SNOWMAN}b")
    assert [decoder.feed(i) for i in ids] == ["a", "", "", SNOWMAN, "b"]
    assert decoder.finish() == ""


def test_what_was_never_completed_is_shown(tokenizer):
    decoder = Decoder(tokenizer)
    ids = tokenizer.encode(f"a{SNOWMAN}")[:-1]
    assert [decoder.feed(i) for i in ids] == ["a", "", ""]
    assert decoder.finish() == "<0xE2><0x98>"


def test_what_can_never_be_completed_is_shown_at_once(tokenizer):
    decoder, broken = Decoder(tokenizer), tokenizer.encode(SNOWMAN)[0]
    assert decoder.feed(broken) == ""
    assert decoder.feed(tokenizer.encode("b")[0]) == "<0xE2>b"
    assert decoder.feed(tokenizer.encode(SNOWMAN)[1]) == "<0x98>"


def test_two_streams_do_not_mix(tokenizer):
    ids = tokenizer.encode(SNOWMAN)
    one, two = Decoder(tokenizer), Decoder(tokenizer)
    one.feed(ids[0])
    assert two.feed(tokenizer.encode("b")[0]) == "b"
    assert one.feed(ids[1]) + one.feed(ids[2]) == SNOWMAN


# Faults


class Panic(BaseException):
    """What a panic of the library is: no Exception."""


def panicking(tokenizer, monkeypatch, fault):
    def fail(_text):
        raise fault

    inner = type("Inner", (), {"encode": staticmethod(fail), "get_vocab": dict})()
    monkeypatch.setattr(tokenizer, "_tokenizer", inner)


def test_a_panic_of_the_library_is_a_sentence(words, monkeypatch):
    panicking(words, monkeypatch, Panic("index out of bounds"))
    with pytest.raises(UsageError, match="cannot read the text: index out of bounds"):
        words.encode("x")


def test_an_interrupt_is_no_fault_of_the_library(words, monkeypatch):
    panicking(words, monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        words.encode("x")


def test_special_tokens_that_are_written_out_can_be_left_out(tokenizer):
    assert tokenizer.without_special("a<|endoftext|>b<|endoftext|>") == "ab"


def test_the_alphabet_of_bytes():
    alphabet = byte_alphabet()
    assert len(alphabet) == len(set(alphabet.values())) == 256
    assert alphabet["A"] == b"A"
    assert alphabet["\u0120"] == b" "
    assert alphabet["\u010a"] == b"\n"
    assert alphabet["\u00e9"] == b"\xe9"
    expected = {char for c in tokenizers.pre_tokenizers.ByteLevel.alphabet() for char in c}
    assert set(alphabet) == expected


def test_words_are_put_together_with_a_space():
    words = from_json(shipped_folders()["toy"] / "tokenizer.json")
    ids = words.encode("the cat eats the fish")
    assert words.decode(ids) == "the cat eats the fish"
    assert [(t.start, t.end) for t in words.tokens(ids)][:3] == [(0, 3), (4, 7), (8, 12)]
    decoder = Decoder(words)
    assert [decoder.feed(i) for i in ids[:2]] == ["the", " cat"]


def test_a_word_that_is_not_known_is_refused():
    words = from_json(shipped_folders()["toy"] / "tokenizer.json")
    with pytest.raises(UsageError, match="this model cannot read the text") as fault:
        words.encode("the horse")
    assert "cat" in fault.value.hint


# Every kind of tokenizer


@pytest.fixture(scope="module")
def kinds():
    return {name: Tokenizer(make()) for name, make in KINDS.items()}


TEXTS = [
    "Lily wanted to play.",
    "the cat eats fish",
    " a\n\tb  ",
    "\u00c9cole \ufb01 \u2603",
    "a</s>b <s>",
    "[bold]\x1b[31m\u202e\x00",
    "<0x0A>",
    "\u2581",
    "\u0120",
    "x<|endoftext|>y",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("kind", KINDS)
def test_text_is_what_the_library_gives_back(kinds, kind, text):
    own = kinds[kind].encoded(text).own
    given_back = kinds[kind].decode(own)
    library = kinds[kind]._tokenizer  # noqa: SLF001
    assert given_back == library.decode(own, skip_special_tokens=False)
    decoder = Decoder(kinds[kind])
    assert "".join(map(decoder.feed, own)) + decoder.finish() == given_back


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_stand_in_the_text_in_order(kinds, kind, text):
    tokenizer, size = kinds[kind], len(text.encode())
    own, places = tokenizer.encoded(text).own, tokenizer.places(text)
    assert len(places) == len(own)
    assert all(0 <= start <= end <= size for start, end in places)
    assert places == sorted(places)
    if tokenizer.joined(own) == text.encode():
        for i, (start, end) in zip(own, places, strict=True):
            assert text.encode()[start:end] in tokenizer.bytes_of(i)


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(any_text)
def test_bytes_lose_nothing(kinds, text):
    tokenizer = kinds["byte_level"]
    assert tokenizer.joined(tokenizer.encode(text)) == text.encode()


@given(any_text.filter(lambda text: not {"\u2581", "<"} & set(text)))
@pytest.mark.parametrize("kind", ["llama", "gemma"])
def test_bytes_to_fall_back_on_lose_nothing(kinds, kind, text):
    encoded = kinds[kind].encoded(text)
    assert kinds[kind].joined(encoded.own) == text.encode()
    assert encoded.prepended == 1


@given(st.lists(st.integers(-1, 500), max_size=9), st.sampled_from(sorted(KINDS)))
def test_streamed_and_whole_say_the_same(kinds, ids, kind):
    decoder = Decoder(kinds[kind])
    assert "".join(map(decoder.feed, ids)) + decoder.finish() == kinds[kind].decode(ids)


def pieces(tokenizer, text):
    return [tokenizer.text_of(i) for i in tokenizer.encoded(text).own]


@pytest.mark.parametrize("kind", ["byte_level", "gemma", "llama", "llama_metaspace"])
def test_spaces_line_ends_and_bytes_look_alike_in_every_kind(kinds, kind):
    found = pieces(kinds[kind], "a\t\n \u2603")
    assert found[-6:] == ["\t", "\n", " ", "<0xE2>", "<0x98>", "<0x83>"]
    data = [kinds[kind].bytes_of(i) for i in kinds[kind].encode("\n\u2603")]
    assert data[-4:] == [b"\n", b"\xe2", b"\x98", b"\x83"]


@pytest.mark.parametrize("kind", ["llama", "llama_metaspace", "unigram"])
def test_a_space_that_is_not_in_the_text_is_shown_and_has_no_place(kinds, kind):
    tokenizer = kinds[kind]
    own = tokenizer.encoded("the").own
    assert pieces(tokenizer, "the")[0][0] == " "
    assert tokenizer.places("the")[0][0] == 0
    assert tokenizer.decode(own) == "the"
    assert tokenizer.decode(own, goes_on=True) == " the"
    assert tokenizer.tokens(own)[-1].end == 3


def test_the_end_of_a_word_is_a_space_if_another_follows(kinds):
    assert pieces(kinds["gpt1"], "the cat") == ["the ", "cat "]
    assert kinds["gpt1"].places("the cat") == [(0, 4), (4, 7)]


def test_places_in_a_text_that_does_not_come_back(kinds):
    assert kinds["gpt1"].places("\u00c9cole, Lily") == [(0, 6), (6, 7), (8, 12)]
    assert kinds["word_level"].places(" \u00e9  the") == [(1, 3), (5, 8)]


def test_added_tokens_beside_the_vocabulary():
    inner = byte_level()
    inner.add_tokens(["  ", "\u2581x"])
    tokenizer = Tokenizer(inner)
    own = tokenizer.encode("a  b\u2581x")
    assert tokenizer.decode(own) == "a  b\u2581x"
    assert [token.special for token in tokenizer.tokens(own)] == [False] * 4
    assert tokenizer.size == inner.get_vocab_size()
    assert tokenizer.text_of(tokenizer.size) == f"<id {tokenizer.size}>"


# BOS and EOS


def test_bos_comes_once_or_not_at_all():
    tokenizer = Tokenizer(llama(), bos_id=1, eos_id=2)
    own = tokenizer.encoded("the").own
    for bos, ids in ((None, [1, *own]), (True, [1, *own]), (False, own)):
        assert tokenizer.encode("the", bos=bos) == ids
        assert tokenizer.encoded("the", bos=bos) == Encoded(ids, int(bos is not False), 0)
    assert (tokenizer.adds_bos, tokenizer.adds_eos) == (True, False)


def test_bos_before_a_text_whose_tokenizer_puts_nothing_there():
    inner = byte_level()
    end = inner.token_to_id("<|endoftext|>")
    tokenizer = Tokenizer(inner, bos_id=end, eos_id=end)
    plain = tokenizer.encode("the")
    assert tokenizer.encoded("the", bos=True) == Encoded([end, *plain], 1, 0)
    assert tokenizer.encode("the", bos=False) == plain
    written = tokenizer.encoded("<|endoftext|>the", bos=True)
    assert written == Encoded([end, *plain], 0, 0)
    assert (tokenizer.adds_bos, tokenizer.adds_eos) == (False, False)


def test_what_stands_after_a_text_stays():
    tokenizer = Tokenizer(KINDS["unigram"](), bos_id=1, eos_id=0)
    assert tokenizer.encoded("the", bos=False).appended == 1
    assert tokenizer.encoded("the", bos=True)[1:] == (1, 1)
    assert (tokenizer.adds_bos, tokenizer.adds_eos) == (False, True)


def test_without_a_bos_token_none_can_be_put():
    tokenizer = Tokenizer(word_level())
    with pytest.raises(UsageError, match="this model names no BOS token"):
        tokenizer.encode("the", bos=True)
    assert tokenizer.encode("the", bos=False) == tokenizer.encode("the")
    assert (tokenizer.adds_bos, tokenizer.adds_eos) == (False, False)


# What became of a text


@pytest.mark.parametrize(
    ("text", "back", "told"),
    [
        ("\u00c9cole", "ecole", "at character 0, '\u00c9' became 'e'"),
        ("the  cat", "the cat", "at character 4, ' ' was left out"),
        (" a", "a", "at character 0, ' ' was left out"),
        ("a\n", "a", "at character 1, '\\n' was left out"),
        ("\ufb01ne", "fine", "at character 0, '\ufb01' became 'fi'"),
        ("the horse eats", "the <unk> eats", "at character 4, 'horse' became '<unk>'"),
        ("play, he", "play , he", "at character 4, ' ' was put in"),
        ("x" * 99 + "A b", "x" * 99 + "a b", "at character 99, 'A' became 'a'"),
        ("", "x", "at character 0, 'x' was put in"),
        ("a " + "b" * 50, "a ", f"at character 2, '{'b' * 20}...' was left out"),
        ("same", "same", "its bytes changed"),
    ],
    ids=ascii,
)
def test_the_first_change_is_told(text, back, told):
    assert first_change(text, back) == told


@given(any_text, any_text)
def test_a_change_is_always_told(text, back):
    assert (first_change(text, back) == "its bytes changed") == (text == back)
    assert len(first_change(text, back)) < 600


def test_a_change_in_a_long_text_is_found_at_once():
    text = "x" * 500_000
    assert first_change(f"{text}A{text}", f"{text}a{text}") == "at character 500000, 'A' became 'a'"
