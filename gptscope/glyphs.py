"""The one policy for characters that have no shape, or a dangerous one.

A character that would move the cursor, reorder text or vanish is shown by its number; so is one
that takes one cell on some terminals and two on others. In tokens, spaces and line ends carry
meaning and get a glyph of their own. Where an encoding lacks a glyph, a space is `~` (as in TeX),
a line end `<0x0A>`, a tab `<0x09>`, and a real `~` is `<0x7E>`: no two texts look the same.
"""

import re
import unicodedata
from functools import lru_cache

TOKEN_GLYPHS = {" ": "·", "\n": "↵", "\t": "⇥"}
SIGNS = {"·": "~", "↵": "<0x0A>", "⇥": "<0x09>"}  # for the glyphs that an encoding lacks
UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}  # Unicode general categories
MARKS = {"Mn", "Me"}  # drawn over the character before them
# Fillers and variation selectors: drawn as nothing, or as a space.
UNSEEN = {"\u034f", "\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"}
UNSEEN |= {chr(c) for c in range(0xFE00, 0xFE10)}
# Halves of flags and tones of skin: terminals do not agree on how wide they are.
UNSURE = {chr(c) for c in (*range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400))}
# The other way round, from what is shown.
CHARACTERS = {glyph: char for char, glyph in TOKEN_GLYPHS.items()}
SHOWN = re.compile(rf"[{''.join(CHARACTERS)}]|<U\+((?:10|[0-9A-F])?[0-9A-F]{{4}})>")
SHOWN_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")


def visible(text: str, keep: str = "") -> str:
    """`text` with every control, format, surrogate or unassigned character shown, not sent."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep else _safe(c) for c in text)


def token_glyphs(text: str) -> str:
    """A token's text with its spaces, tabs and line ends visible; `<id 7>` stays as it is."""
    if text.startswith("<id ") and re.fullmatch(r"<id \d+>", text):
        return text
    if text.isascii() and text.isprintable():
        return text.replace(" ", TOKEN_GLYPHS[" "])
    first = _by_number(text[0]) if unicodedata.category(text[0]) in MARKS else ""
    rest = text[1:] if first else text
    return first + "".join(TOKEN_GLYPHS.get(c) or _numbered_if_glyph(c) for c in rest)


def token_bytes(shown: str) -> bytes:
    """The bytes of the token that `token_glyphs` shows so: the other way round.

    `<0x41>` is one byte, which need not be a character by itself.
    """
    text = SHOWN.sub(lambda m: chr(int(m[1], 16)) if m[1] else CHARACTERS[m[0]], shown)
    whole = text.encode(errors="surrogatepass")
    return SHOWN_BYTE.sub(lambda m: bytes.fromhex(m[1].decode()), whole)


def encodable(text: str, encoding: str) -> str:
    """`text` with signs for the glyphs that the encoding lacks; other characters by number."""
    if encoding.lower().startswith("utf") or (text.isascii() and SIGNS["·"] not in text):
        return text
    return "".join(_encoded(c, encoding) for c in text)


@lru_cache(4096)
def has(encoding: str, text: str) -> bool:
    """Whether an encoding has all of these characters."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encoded(char: str, encoding: str) -> str:
    if char == SIGNS["·"] and not has(encoding, "·"):
        return _by_number(char)
    if has(encoding, char):
        return char
    return SIGNS.get(char) or _by_number(char)


def _numbered_if_glyph(char: str) -> str:
    """A character that looks like one of the glyphs must not be taken for it."""
    return _by_number(char) if char in TOKEN_GLYPHS.values() else _safe(char)


def _safe(char: str) -> str:
    if char == " " or not _is_unsafe(char):
        return char
    return _by_number(char)


def _is_unsafe(char: str) -> bool:
    return unicodedata.category(char) in UNSAFE or char in UNSEEN or char in UNSURE


def _by_number(char: str) -> str:
    code = ord(char)
    return f"<0x{code:02X}>" if code < 0x80 else f"<U+{code:04X}>"
