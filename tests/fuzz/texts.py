"""Texts of every kind, and what must hold of them; each from its seed alone."""

import random
import unicodedata
from contextlib import contextmanager

from gptscope.errors import UsageError
from gptscope.glyphs import UNSAFE, token_glyphs, visible
from gptscope.model.shipped import shipped_folders
from gptscope.model.tokenizer_files import load_tokenizer
from gptscope.tokens import Decoder

LONGEST = 120
PIECES = [
    *("[bold]", "[/items]", ":smile:", "list[str]", "<id 7>", "<0x1B>", "</text>", "=1+1", "'s"),
    *("\x1b[31m", "\x1b]0;t\x07", "\r\n", "\t", "\x00", "\x9b", "\u00ad", "\u0120", "\u010a"),
    *("\u202e", "\u2066", "\u200d", "\ufeff", "\ufffe", "\U0010ffff", "\ue000", "\u0300" * 9),
    *("Lily", " wanted", " to", "  ", "\n\n", "\u201chi\u201d", "caf\u00e9", "\u6f22"),
    *("<|endoftext|>", "\U0001f469\u200d\U0001f467"),
]
RANGES = [(0x20, 0x7F), (0, 0x20), (0x7F, 0x250), (0x250, 0x3000), (0x3000, 0xD800)]
RANGES += [(0xE000, 0x10000), (0x10000, 0x20000), (0xE0000, 0xE0200), (0, 0xD800)]
WORDS = ["the", "cat", "dog", "eats", "sees", "and", "horse", "fish"]


@contextmanager
def tokenizers_of():
    """The shipped tokenizers: bytes, and whole words."""
    yield [load_tokenizer(shipped_folders()[name]) for name in ("tiny", "toy")]


def cases(seed, count, found):
    """This many texts, each with a tokenizer that is to read it."""
    rng = random.Random(seed)  # noqa: S311
    for _ in range(count):
        tokenizer = rng.choices(found, (9, 1))[0]
        yield tokenizer, text_of(rng, words=tokenizer is found[1]), rng.randrange(1 << 30)


def text_of(rng, *, words=False):
    if words and rng.random() < 0.7:
        return rng.choice((" ", "  ", "\n")).join(rng.choices(WORDS, k=rng.randrange(9)))
    out = []
    while rng.random() < 0.9 and sum(map(len, out)) < LONGEST:
        out.append(rng.choice((piece, characters, characters))(rng))
    if rng.random() < 0.05:  # half a character
        out.insert(rng.randint(0, len(out)), chr(rng.randrange(0xD800, 0xE000)))
    return "".join(out)


def piece(rng):
    return rng.choice(PIECES)


def characters(rng):
    low, high = rng.choice(RANGES)
    return "".join(chr(rng.randrange(low, high)) for _ in range(rng.choice((1, 1, 4, 20))))


def check(tokenizer, text, seed):
    """Whether the tokenizer read the text; all that must hold of text and tokens is asserted."""
    check_visible(text)
    try:
        made = tokenizer.encoded(text)
    except UsageError as fault:
        check_refusal(fault)
        return False
    tokens = tokenizer.tokens(made.ids)
    together = tokenizer.between.join(token.bytes for token in tokens)
    given_back = tokenizer.decode(made.ids)
    if not tokenizer.between:  # bytes: nothing is lost
        assert together.decode() == given_back == text
    decoder = Decoder(tokenizer)
    assert "".join(map(decoder.feed, made.ids)) + decoder.finish() == given_back
    check_any_ids(tokenizer, random.Random(seed))  # noqa: S311
    for token in tokens:
        assert together[token.start : token.end] == token.bytes
        assert_safe(visible(token.text))
        assert_safe(token_glyphs(token.text))
    return True


def check_refusal(fault):
    """A sentence that can be shown."""
    assert_safe(visible(fault.message + (fault.hint or "")))
    assert "not valid Unicode" in fault.message or "cannot read the text" in fault.message


def check_any_ids(tokenizer, rng):
    """Ids that no text makes: streamed and whole, they say the same."""
    ids = [rng.randrange(-2, 4200) for _ in range(rng.randrange(12))]
    decoder = Decoder(tokenizer)
    assert "".join(map(decoder.feed, ids)) + decoder.finish() == tokenizer.decode(ids)
    assert_safe(visible(tokenizer.decode(ids)))


def check_visible(text):
    assert_safe(visible(text))
    assert_safe(token_glyphs(text))
    assert_safe(visible(text, keep="\n\t"), allowed="\n\t")
    if not any(unicodedata.category(c) in UNSAFE for c in text.replace(" ", "")):
        assert len(visible(text)) >= len(text)


def assert_safe(shown, allowed=""):
    """No character that a terminal could obey."""
    assert shown.replace(" ", "").isprintable() or all(
        c in allowed or c == " " or unicodedata.category(c) not in UNSAFE for c in shown
    )
    shown.encode()
