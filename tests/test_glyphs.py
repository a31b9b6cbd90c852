import unicodedata

import pytest

from gptscope.glyphs import (
    SIGNS,
    TOKEN_GLYPHS,
    UNSAFE,
    UNSEEN,
    UNSURE,
    encodable,
    has,
    token_bytes,
    token_glyphs,
    visible,
)

SHOWN = [
    ("\x1b[31m", "<0x1B>[31m"),
    ("\r", "<0x0D>"),
    ("\x00", "<0x00>"),
    ("\x7f", "<0x7F>"),
    ("\x9b", "<U+009B>"),
    ("\u202e", "<U+202E>"),
    ("\u200b", "<U+200B>"),
    ("\ufeff", "<U+FEFF>"),
    ("\u2028", "<U+2028>"),
    ("\u2029", "<U+2029>"),
    ("\ud800", "<U+D800>"),
    ("\ue000", "<U+E000>"),
    ("\u0378", "<U+0378>"),
    ("\U000e0041", "<U+E0041>"),
    ("\xa0", "<U+00A0>"),
    ("\u2003", "<U+2003>"),
    ("\u3000", "<U+3000>"),
    ("\u034f", "<U+034F>"),
    ("\u2800", "<U+2800>"),
    ("\u3164", "<U+3164>"),
    ("\uffa0", "<U+FFA0>"),
    ("\ufe00", "<U+FE00>"),
    ("\ufe0f", "<U+FE0F>"),
    ("\U0001f1e9", "<U+1F1E9>"),
    ("\U0001f3fd", "<U+1F3FD>"),
]
HARMLESS = [
    "",
    "plain text",
    "caf\u00e9",
    "\u4f60\u597d",
    "\U0001f600",
    "e\u0301",
    "[red]",
    "<0x1B>",
]


@pytest.mark.parametrize(("char", "shown"), SHOWN, ids=[ascii(char) for char, _ in SHOWN])
@pytest.mark.parametrize("write", [visible, token_glyphs])
def test_what_is_unsafe_is_shown_by_its_number(write, char, shown):
    assert write(char) == shown
    assert write(f"a{char}b") == f"a{shown}b"


@pytest.mark.parametrize("text", HARMLESS, ids=ascii)
def test_what_is_harmless_stays(text):
    assert visible(text) == text
    assert token_glyphs(text) == text.replace(" ", "\u00b7")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" Lily", "\u00b7Lily"),
        ("\n\n", "\u21b5\u21b5"),
        ("\t", "\u21e5"),
        (" \r\n", "\u00b7<0x0D>\u21b5"),
    ],
)
def test_space_in_a_token_is_visible(text, shown):
    assert token_glyphs(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u00b7", "<U+00B7>"),
        ("\u21b5", "<U+21B5>"),
        ("\u21e5", "<U+21E5>"),
        (" a\u00b7b", "\u00b7a<U+00B7>b"),
    ],
)
def test_a_glyph_in_a_token_is_not_taken_for_a_space(text, shown):
    assert token_glyphs(text) == shown
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("<id 7>", "<id 7>"), ("<id 7> ", "<id\u00b77>\u00b7"), ("<id x>", "<id\u00b7x>")],
)
def test_the_id_of_a_token_without_a_text_stays(text, shown):
    assert token_glyphs(text) == shown


@pytest.mark.parametrize(
    ("text", "keep", "shown"),
    [
        ("a\tb\n", "", "a<0x09>b<0x0A>"),
        ("a\tb\n", "\n", "a<0x09>b\n"),
        ("a\tb\n\x1b", "\n\t", "a\tb\n<0x1B>"),
        (" a ", "", " a "),
    ],
)
def test_line_ends_are_kept_where_they_are_wanted(text, keep, shown):
    assert visible(text, keep=keep) == shown


@pytest.mark.parametrize("write", [visible, token_glyphs])
def test_no_unsafe_character_of_unicode_goes_through(write):
    every = "".join(map(chr, [*range(0x20000), *range(0xE0000, 0xE0200), 0x10FFFF]))
    through = set(write(every)) - {" "}
    left = {unicodedata.category(c) for c in through}
    assert not left & UNSAFE
    assert not through & (UNSEEN | UNSURE)
    assert len(left) > 20


# The other way round


def test_a_token_comes_back_from_what_is_shown():
    every = [chr(c) for c in (*range(0x20000), *range(0xE0000, 0xE0200), 0x10FFFF)]
    for text in ["".join(every), *every[:0x300]]:
        assert token_bytes(token_glyphs(text)) == text.encode(errors="surrogatepass")


@pytest.mark.parametrize(
    ("shown", "data"),
    [
        ("\u00b7mom", b" mom"),
        ("\u21b5\u21e5", b"\n\t"),
        ("<0x41>", b"A"),
        ("a<0xC3><0xA9>b", b"a\xc3\xa9b"),
        ("<U+00B7>\u00b7", "\u00b7 ".encode()),
        ("<U+0301>a", "\u0301a".encode()),
        ("<U+10FFFF>", "\U0010ffff".encode()),
        ("", b""),
    ],
)
def test_the_bytes_of_what_is_shown(shown, data):
    assert token_bytes(shown) == data


@pytest.mark.parametrize("text", ["<0x4>", "<0x4g>", "<U+110000>", "<U+12>", "<id 7>", "~"])
def test_what_shows_no_character_stays(text):
    assert token_bytes(text) == text.encode()


def test_glyphs_are_one_cell_wide():
    assert set(TOKEN_GLYPHS) == {" ", "\n", "\t"}
    assert all(len(glyph) == 1 and glyph.isprintable() for glyph in TOKEN_GLYPHS.values())


@pytest.mark.parametrize("mark", ["\u0301", "\u20e3", "\u3099"])
def test_a_mark_that_stands_on_nothing_is_shown_by_its_number(mark):
    number = f"<U+{ord(mark):04X}>"
    assert token_glyphs(mark) == number
    assert token_glyphs(f"{mark}a{mark}") == f"{number}a{mark}"
    assert token_glyphs(f"a{mark}") == f"a{mark}"
    assert visible(mark) == mark  # text that is written piece by piece may have sent its letter


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("\u00b7Lily", "utf-8", "\u00b7Lily"),
        ("\u00b7Lily~_", "ascii", "~Lily<0x7E>_"),
        ("\u00b7Lily~_", "cp1252", "\u00b7Lily~_"),
        ("\u00b7\u21b5\u21e5", "ascii", "~<0x0A><0x09>"),
        ("\u00b7\u21b5\u21e5", "cp1252", "\u00b7<0x0A><0x09>"),
        ("caf\u00e9 \u20ac \u6f22", "cp1252", "caf\u00e9 \u20ac <U+6F22>"),
        ("caf\u00e9 \u20ac \u6f22", "latin-1", "caf\u00e9 <U+20AC> <U+6F22>"),
        ("e\u0301\U0001f469", "ascii", "e<U+0301><U+1F469>"),
        ("plain ~ text", "utf-8", "plain ~ text"),
        ("plain _ text", "ascii", "plain _ text"),
        ("a", "no such encoding", "a"),
        ("\u00e9", "no such encoding", "<U+00E9>"),
    ],
)
def test_what_an_encoding_lacks_is_shown_by_a_sign_or_by_its_number(text, encoding, shown):
    assert encodable(text, encoding) == shown


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "koi8-r", "gbk", "shift_jis"])
def test_two_tokens_never_look_the_same(encoding):
    every = [chr(c) for c in range(0x3000) if chr(c) not in "<>"]
    shown = [encodable(token_glyphs(char), encoding) for char in every]
    assert all(has(encoding, text) for text in shown)
    assert len(set(shown)) == len(shown)


def test_there_is_a_sign_for_every_glyph():
    assert set(SIGNS) == set(TOKEN_GLYPHS.values())
    assert all(sign.isascii() for sign in SIGNS.values())
