"""What happens before every command: read the text, load the model."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gptscope.commands.notices import as_trained, tell_change
from gptscope.commands.output import tell
from gptscope.commands.reading import LONGEST, begun, read_text, tokenised
from gptscope.errors import UsageError
from gptscope.glyphs import token_glyphs, visible
from gptscope.model.files import counted
from gptscope.tokens import Token, check_unicode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.commands.options import Source
    from gptscope.engine.edits import Edits
    from gptscope.engine.step import Hook
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model


@dataclass(frozen=True, eq=False)
class Run:
    """A model and the tokens that it is given."""

    model: Model
    ids: tuple[int, ...]
    text: str | None  # as it was fed: places are counted in it
    prepended: int = 0  # tokens that stand before the text
    appended: int = 0  # and after it
    verbose: bool = False
    edits: Edits | None = None  # what is changed while the model runs

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of each token, or its id where there is no tokenizer."""
        words = {i: token_text(self.model, i) for i in set(self.ids)}
        return tuple(words[i] for i in self.ids)

    def place(self, position: int) -> str:
        """A token in words: `token 5 ·her`."""
        return f"token {position} {token_glyphs(token_text(self.model, self.ids[position]))}"

    @property
    def tokens(self) -> list[Token]:
        """Every token with its bytes and its place; without a tokenizer, ids alone."""
        if self.model.tokenizer is None:
            return [Token(i, f"<id {i}>", b"", 0, 0, special=False) for i in self.ids]
        return self.model.tokenizer.tokens(self.ids)

    def trace(self, *keep: str) -> Trace:
        """A pass with these values kept; all if none is named."""
        from gptscope.commands.progress import counting
        from gptscope.engine.trace import trace

        with timed(self.verbose) as say, counting(self.model) as model:
            made = trace(model, self.ids, keep or None, self.edits or ())
            kept = counted(len(made.names()), "value")
            say(f"ran {model.spec.n_layers} blocks in {self.model.dtype}: {kept} kept")
        return made

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
        edits = self.edits.texts if self.edits else ()
        return {"model": about_model(self.model), "input": given, "edits": edits}

    def hook(self) -> Hook:
        """What changes the values of a pass over these tokens, where there are edits."""
        from gptscope.engine.step import untouched

        return self.edits.hook(len(self.ids), untouched) if self.edits else untouched


def start(source: Source, *, may_be_empty: bool = False, longest: int = LONGEST) -> Run:
    """Load the model and turn the text, or the ids, into tokens.

    Raises:
        UsageError: no text, or more than one; text for a model without a tokenizer.
    """
    given = [v for v in (source.text, source.file, source.ids) if v is not None]
    if len(given) > 1:
        raise UsageError("give one of TEXT, --file and --ids, not several")
    if not given and not may_be_empty:
        source = with_example(source)
    model = opened(source.model, source.dtype, verbose=source.verbose)
    with timed(source.verbose) as say:
        run = fed(model, source, may_be_empty=may_be_empty, longest=longest)
        say(f"read the input: {counted(len(run.ids), 'token')}")
    return replace(run, verbose=source.verbose, edits=asked_edits(model, source))


def asked_edits(model: Model, source: Source) -> Edits | None:
    """What --edit asks for, read; another text is read as the text itself is.

    Raises:
        UsageError: it cannot be read, or names what this model does not have.
    """
    texts = getattr(source, "edit", None)
    if not texts:
        return None
    from gptscope.engine.edits import Edits

    def encode(text: str) -> tuple[int, ...]:
        check_unicode(text)
        return encoded(model, as_trained(text, model, source.model), bos=source.bos).ids

    edits = Edits(model, texts, encode)
    for remark in edits.remarks:
        tell(visible(f"note: {remark}"))
    return edits


def opened(name: str, dtype: str = "float32", *, verbose: bool) -> Model:
    """The model of this name; how long it took is told if that is wanted."""
    from gptscope.model.load import load

    with timed(verbose) as say:
        model = load(name, dtype)
        say(f"loaded {model.name}: {model.spec.family}, {model.n_params:,} parameters")
    return model


def fed(model: Model, source: Source, *, may_be_empty: bool, longest: int = LONGEST) -> Run:
    """The ids that were given, or the text as tokens.

    Raises:
        UsageError: the text is empty, or is not one.
    """
    if source.ids is not None:
        ids, prepended = begun(model, parse_ids(source.ids, model), bos=source.bos)
        return Run(model, ids, None, prepended)
    text = read_text(source, longest)
    if not text and may_be_empty:
        ids, prepended = begun(model, (), bos=source.bos)
        return Run(model, ids, None, prepended)
    if not text:
        raise UsageError("the text is empty: there is no token to look at")
    check_unicode(text)
    return encoded(model, as_trained(text, model, source.model), bos=source.bos)


@contextmanager
def timed(verbose: bool) -> Iterator[Callable[[str], None]]:
    """Says on standard error what was done in between, and how long it took."""
    begun, done = time.perf_counter(), list[str]()
    yield done.append
    if verbose and done:
        tell(visible(f"{done[-1]}, {1000 * (time.perf_counter() - begun):.1f} ms"))


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


def encoded(model: Model, text: str, *, bos: bool | None = None) -> Run:
    """The text as tokens, and how many stand around it: what its own rules put there, or --bos.

    Raises:
        UsageError: the tokenizer is another model's, and makes ids that this one does not have.
    """
    if model.tokenizer is None:
        raise UsageError(
            f"{model.no_tokenizer}, so it cannot read a text",
            hint="give token ids: --ids 643,414,266",
        )
    made = tokenised(model.tokenizer, text, bos=bos)
    tell_change(model.tokenizer, text, made.own)
    if model.tokenizer.size > model.spec.n_vocab:
        tell(
            f"warning: {model.tokenizer.file} has {model.tokenizer.size:,} tokens, and this model "
            f"{model.spec.n_vocab:,}: it may be that of another model"
        )
    outside = next((i for i in made.ids if i >= model.spec.n_vocab), None)
    if outside is not None:
        piece = model.tokenizer.text_of(outside)
        raise UsageError(
            f"{model.tokenizer.file} makes the token id {outside} of {piece!r}, "
            f"and this model has ids 0 to {model.spec.n_vocab - 1}",
            hint="the tokenizer may be that of another model",
        )
    return Run(model, tuple(made.ids), text, made.prepended, made.appended)


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
