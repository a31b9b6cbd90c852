import json

import pytest
import tokenizers

from gptscope.errors import ModelError, UsageError
from gptscope.model.shipped import shipped_folders
from gptscope.tokens import Decoder, Encoded, Token, Tokenizer, byte_alphabet, load_tokenizer

TINY = shipped_folders()["tiny"] / "tokenizer.json"
SNOWMAN = "\u2603"  # three bytes: E2 98 83


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(TINY)


@pytest.fixture
def changed(tmp_path):
    # The shipped tokenizer with other settings.
    def load(**settings):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(json.loads(TINY.read_text("utf-8")) | settings), "utf-8")
        return load_tokenizer(path)

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


# The file


def test_a_tokenizer_that_is_not_there(tmp_path):
    assert load_tokenizer(tmp_path / "tokenizer.json") is None
    with pytest.raises(ModelError, match="cannot be read: it is not a file"):
        load_tokenizer(tmp_path)


def test_what_the_library_says_is_cut(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": "x" * 5000}), "utf-8")
    with pytest.raises(ModelError, match="a tokenizer that can be read") as fault:
        load_tokenizer(tmp_path / "tokenizer.json")
    assert len(fault.value.message) < 500


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


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"model": {"type": "Magic"}}']
)
def test_a_malformed_tokenizer_is_refused(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json is not a tokenizer that can be read"):
        load_tokenizer(path)


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
    words = load_tokenizer(shipped_folders()["toy"] / "tokenizer.json")
    ids = words.encode("the cat eats the fish")
    assert words.decode(ids) == "the cat eats the fish"
    assert [(t.start, t.end) for t in words.tokens(ids)][:3] == [(0, 3), (4, 7), (8, 12)]
    decoder = Decoder(words, goes_on=True)
    assert "".join(map(decoder.feed, ids)) == " the cat eats the fish"


def test_a_word_that_is_not_known_is_refused():
    words = load_tokenizer(shipped_folders()["toy"] / "tokenizer.json")
    with pytest.raises(UsageError, match="this model cannot read the text") as fault:
        words.encode("the horse")
    assert "cat" in fault.value.hint
