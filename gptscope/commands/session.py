"""What happens before every command: read the text, load the model."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gptscope.commands.notices import as_trained, tell_of_weights
from gptscope.commands.output import tell
from gptscope.errors import GptscopeError, UsageError
from gptscope.tokens import Token, check_unicode

if TYPE_CHECKING:
    from pathlib import Path

    from gptscope.commands.options import Source
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model


LONGEST = 1_000_000  # bytes of a text: a long novel, whose tokens are listed in seconds


@dataclass(frozen=True, eq=False)
class Run:
    """A model and the tokens that it is given."""

    model: Model
    ids: tuple[int, ...]
    text: str | None  # as it was fed: places are counted in it
    prepended: int = 0  # tokens that stand before the text
    appended: int = 0  # and after it

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of each token, or its id where there is no tokenizer."""
        return tuple(token_text(self.model, i) for i in self.ids)

    @property
    def tokens(self) -> list[Token]:
        """Every token with its bytes and its place; without a tokenizer, ids alone."""
        if self.model.tokenizer is None:
            return [Token(i, f"<id {i}>", b"", 0, 0, special=False) for i in self.ids]
        return self.model.tokenizer.tokens(self.ids)

    def trace(self, *keep: str) -> Trace:
        """A pass with these values kept; all if none is named."""
        from gptscope.engine.trace import trace

        return trace(self.model, self.ids, keep or None)

    @property
    def about(self) -> dict[str, Any]:
        """The model and the input, as every view names them."""
        tokens = list(self.labels)
        given = {
            "text": self.text,
            "ids": list(self.ids),
            "tokens": tokens,
            "prepended": self.prepended,
            "appended": self.appended,
        }
        return {"model": about_model(self.model), "input": given}


def start(source: Source, *, may_be_empty: bool = False) -> Run:
    """Load the model and turn the text, or the ids, into tokens.

    Raises:
        UsageError: no text, or more than one; text for a model without a tokenizer.
    """
    given = [v for v in (source.text, source.file, source.ids) if v is not None]
    if len(given) > 1:
        raise UsageError("give one of TEXT, --file and --ids, not several")
    if not given and not may_be_empty:
        source = with_example(source)
    from gptscope.model.load import load

    tell_of_weights()
    model = load(source.model, source.dtype)
    if source.ids is not None:
        return Run(model, parse_ids(source.ids, model), None)
    text = read_text(source)
    if not text and may_be_empty:
        return Run(model, (), None)
    if not text:
        raise UsageError("the text is empty: there is no token to look at")
    check_unicode(text)
    return encoded(model, as_trained(text, model, source.model))


def with_example(source: Source) -> Source:
    """The same with the text that a shipped model is shown with; it is told on standard error.

    Raises:
        UsageError: the model is not a shipped one.
    """
    from gptscope.model.shipped import EXAMPLES

    text = EXAMPLES.get(source.model)
    if text is None:
        raise UsageError("there is no text", hint='give one in quotes: "Lily wanted to play"')
    tell(f'no text was given, so this is an example: "{text}"')
    return replace(source, text=text)


def encoded(model: Model, text: str) -> Run:
    """The text as tokens, and how many the tokenizer put around it.

    Raises:
        UsageError: the tokenizer is another model's, and makes ids that this one does not have.
    """
    if model.tokenizer is None:
        raise UsageError(
            "this model has no tokenizer.json, so it cannot read a text",
            hint="give token ids: --ids 643,414,266",
        )
    made = model.tokenizer.encoded(text)
    outside = next((i for i in made.ids if i >= model.spec.n_vocab), None)
    if outside is not None:
        piece = model.tokenizer.text_of(outside)
        raise UsageError(
            f"tokenizer.json makes the token id {outside} of {piece!r}, "
            f"and this model has ids 0 to {model.spec.n_vocab - 1}",
            hint="the tokenizer may be that of another model",
        )
    return Run(model, tuple(made.ids), text, made.prepended, made.appended)


def read_text(source: Source) -> str:
    """TEXT, or what the file or standard input holds.

    Raises:
        GptscopeError: the file cannot be read, or is not UTF-8.
        UsageError: the text is longer than any that is looked at.
    """
    if source.file is None:
        text = source.text or ""
        size = len(text.encode(errors="surrogatepass"))
    else:
        data = bytes_of(source.file)
        size = len(data)
        text = decoded(data, source.file) if size <= LONGEST else ""
    if size > LONGEST:
        raise UsageError(
            f"the text is longer than {LONGEST:,} bytes, and is not read",
            hint="a part of it shows as much: head -c 1000 FILE | gptscope ... --file -",
        )
    return text


def bytes_of(file: Path) -> bytes:
    """What a file or, for -, standard input holds, and no more than is needed to see its end.

    Raises:
        GptscopeError: it cannot be read.
    """
    try:
        if str(file) == "-":
            return standard_input()
        with file.open("rb") as stream:
            return stream.read(LONGEST + 1)
    except (OSError, ValueError) as fault:  # a NUL in the name is no OSError
        why = getattr(fault, "strerror", None) or fault
        raise GptscopeError(f"{file} cannot be read: {why}") from fault


def decoded(data: bytes, file: Path) -> str:
    """UTF-8 as text.

    Raises:
        GptscopeError: it is something else.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as fault:
        raise GptscopeError(f"{file} is not UTF-8 text: {fault}") from fault


def standard_input() -> bytes:
    """All of it, or as much as is needed to see that it is too long.

    Raises:
        GptscopeError: there is none.
    """
    if sys.stdin is None:
        raise GptscopeError("standard input is closed")
    return sys.stdin.buffer.read(LONGEST + 1)


def parse_ids(text: str, model: Model) -> tuple[int, ...]:
    """`643,414,266` as token ids of this model.

    Raises:
        UsageError: it is something else, or one is outside the vocabulary.
    """
    from gptscope.engine.ids import in_vocabulary

    try:
        ids = [int(part) for part in text.replace(" ", ",").split(",") if part]
    except ValueError:
        raise UsageError(
            f"--ids takes whole numbers with commas between them, not {text!r}"
        ) from None
    if not ids:
        raise UsageError("--ids holds no token id")
    return tuple(in_vocabulary(model.spec, ids).tolist())


def token_text(model: Model, token_id: int) -> str:
    """The text of one token, or its id where there is no tokenizer."""
    return f"<id {token_id}>" if model.tokenizer is None else model.tokenizer.text_of(token_id)


def about_model(model: Model) -> dict[str, Any]:
    """The name and sizes of a model, as every view names them."""
    s = model.spec
    return {
        "name": model.name,
        "family": s.family,
        "n_layers": s.n_layers,
        "n_heads": s.n_heads,
        "d_model": s.d_model,
        "d_head": s.d_head,
        "d_ff": s.d_ff,
        "n_vocab": s.n_vocab,
        "n_ctx": s.n_ctx,
        "n_params": model.n_params,
        "dtype": str(model.dtype),
    }
