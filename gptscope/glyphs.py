"""The one policy for characters that have no shape, or a dangerous one.

A character that would move the cursor, reorder text or vanish is shown by its number. In tokens,
spaces and line ends carry meaning and get a glyph of their own.
"""

import re
import unicodedata

TOKEN_GLYPHS = {" ": "·", "\n": "↵", "\t": "⇥"}
UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}  # Unicode general categories
# Fillers and variation selectors: drawn as nothing, or as a space.
UNSEEN = {"\u034f", "\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"}
UNSEEN |= {chr(c) for c in range(0xFE00, 0xFE10)}


def visible(text: str, keep: str = "") -> str:
    """`text` with every control, format, surrogate or unassigned character shown, not sent."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep else _safe(c) for c in text)


def token_glyphs(text: str) -> str:
    """A token's text with its spaces, tabs and line ends visible; `<id 7>` stays as it is."""
    if re.fullmatch(r"<id \d+>", text):
        return text
    return "".join(TOKEN_GLYPHS.get(c) or _numbered_if_glyph(c) for c in text)


def _numbered_if_glyph(char: str) -> str:
    """A character that looks like one of the glyphs must not be taken for it."""
    return f"<U+{ord(char):04X}>" if char in TOKEN_GLYPHS.values() else _safe(char)


def _safe(char: str) -> str:
    if char == " " or not (unicodedata.category(char) in UNSAFE or char in UNSEEN):
        return char
    code = ord(char)
    return f"<0x{code:02X}>" if code < 0x80 else f"<U+{code:04X}>"
