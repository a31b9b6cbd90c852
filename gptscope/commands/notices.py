"""What is told of a text on standard error, and stops nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.output import tell
from gptscope.glyphs import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.model.weights import Model
    from gptscope.tokens import Tokenizer

NAMED = 8  # characters in a warning


def as_trained(text: str, model: Model, name: str) -> str:
    """The text as the model's training data were written, where its folder says how.

    What was changed is told on standard error, and so is what the model never saw, which stays.
    """
    from gptscope.model.find import find_weights
    from gptscope.model.text import read_characters

    characters = read_characters(find_weights(name).parent)
    if characters is None or model.tokenizer is None:
        return text
    mapped = characters.map(text)
    if mapped.replaced:
        n = sum(mapped.replaced.values())
        pairs = (f"{numbered(char)} to {characters.mapped[char]!r}" for char in mapped.replaced)
        what = f"{n} character{'s' * (n != 1)}: {', '.join(pairs)}"
        tell(visible(f"mapped as in the training of {model.name}: {what}"))
    unseen = characters.unseen(model.tokenizer.without_special(mapped.text))
    if unseen:
        more = f" and {len(unseen) - NAMED} more" if len(unseen) > NAMED else ""
        named = ", ".join(map(numbered, unseen[:NAMED]))
        tell(visible(f"warning: {model.name} never saw: {named}{more}"))
    return mapped.text


def tell_change(tokenizer: Tokenizer, text: str, own: Sequence[int]) -> None:
    """Say on standard error that the model does not read the text as it is, where that is so."""
    change = changed(tokenizer, text, own)
    if change is not None:
        tell(visible(f"warning: {change}"))


def changed(tokenizer: Tokenizer, text: str, own: Sequence[int]) -> str | None:
    """How a text is not what its own tokens give back; nothing, where it is byte for byte."""
    from gptscope.tokens import first_change

    back = tokenizer.joined(own)
    if back == text.encode():
        return None
    change = first_change(text, back.decode(errors="show_byte"))
    return f"the text does not come back from its tokens: {change}"


def numbered(char: str) -> str:
    """A character, if it can be shown, and its number: `\u00e9 (U+00E9)`."""
    number = f"U+{ord(char):04X}"
    return f"{char} ({number})" if visible(char) == char != " " else number
