"""Files of tokenizers, as the `tokenizers` library reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import (
    AddedToken,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from gptscope.errors import ModelError
from gptscope.tokens.faults import readable
from gptscope.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WITHOUT = "without {}, the model can be given token ids: --ids 643,414,266"
END_OF_WORD = "</w>"
GPT2_END = "<|endoftext|>"  # GPT-2's BOS, EOS and unknown token, where nothing else is said
GPT1_UNKNOWN = "<unk>"
PARTS = b'"gpt2-byte-bpe"'
SETTINGS = ("special", "single_word", "lstrip", "rstrip", "normalized")
SHOWN = 40  # characters of a token in a sentence


@dataclass(frozen=True)
class Added:
    """A token that stands outside the vocabulary, or is found in a text before all others."""

    content: str
    id: int | None = None  # the next one
    special: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False

    @property
    def place(self) -> tuple[bool, int]:
        """Where it comes among the others: by its id, and at the end without one."""
        return self.id is None, self.id or 0


@dataclass(frozen=True)
class Said:
    """What a model folder says of its tokenizer beside the vocabulary."""

    roles: Mapping[str, str | None] = field(default_factory=dict)  # "bos_token" -> "<s>"
    bos_id: int | None = None  # what the model's own config says
    has_chat_template: bool = False
    adds_bos: bool = False
    adds_eos: bool = False
    adds_prefix_space: bool = False
    added: tuple[Added, ...] = ()
    where: str = ""  # the folder


def from_json(path: Path, said: Said = Said()) -> Tokenizer:
    """The tokenizer of a tokenizer.json; its own rules say what stands around a text.

    Raises:
        ModelError: it cannot be understood.
    """
    with readable(f"{path} is not a tokenizer", WITHOUT.format("that file")):
        inner = of_parts(path) if has_parts(path) else tokenizers.Tokenizer.from_file(str(path))
        return finished(inner, said, path)


def has_parts(path: Path) -> bool:
    """Whether this is the form of transformer-visualized: a vocabulary, merges, special tokens."""
    with path.open("rb") as file:
        return PARTS in file.read(len(PARTS) + 64)


def of_parts(path: Path) -> tokenizers.Tokenizer:
    """The byte-level BPE of these parts.

    Raises:
        ValueError: they are not what they should be.
    """
    parts = json.loads(path.read_text("utf-8"))
    special = parts.get("specialTokens", {})
    merges = [tuple(pair) for pair in parts.get("merges", ())]
    inner = tokenizers.Tokenizer(models.BPE(vocab=parts.get("vocab"), merges=merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(sorted(special, key=special.__getitem__))
    wrong = next((text for text, i in special.items() if inner.token_to_id(text) != i), None)
    if wrong is not None:
        raise ValueError(f"the special token {wrong[:SHOWN]!r} cannot have its id")
    return inner


def from_merges(vocab: Path, merges: Path, said: Said = Said()) -> Tokenizer:
    """The tokenizer of a vocab.json and a merges.txt: GPT-2's, or GPT's where </w> ends words.

    Raises:
        ModelError: they cannot be understood, or the added tokens do not fit them.
    """
    what = f"{vocab} with {merges.name} is not a tokenizer"
    with readable(what, WITHOUT.format("those files")):
        make = words if ends_words(vocab, merges) else byte_level
        inner = make(str(vocab), str(merges), said)
        said = with_defaults(said, inner)
        add(inner, said)
        put_around(inner, said)
        return finished(inner, said, vocab)


def finished(inner: tokenizers.Tokenizer, said: Said, path: Path) -> Tokenizer:
    """A tokenizer and its BOS and EOS tokens."""
    bos, eos = (
        inner.token_to_id(said.roles.get(role) or "") for role in ("bos_token", "eos_token")
    )
    return Tokenizer(
        inner,
        bos_id=bos if said.bos_id is None else said.bos_id,
        eos_id=eos,
        has_chat_template=said.has_chat_template,
        file=path.name,
    )


def ends_words(vocab: Path, merges: Path) -> bool:
    """Whether pieces mark the end of a word, as GPT's do, and not the space before it."""
    data = vocab.read_bytes() + merges.read_bytes()
    spaces = data.count("\u0120".encode()) + data.count(b"\\u0120")
    return data.count(END_OF_WORD.encode()) > spaces


def byte_level(vocab: str, merges: str, said: Said) -> tokenizers.Tokenizer:
    """GPT-2's tokenizer (Radford et al. 2019, section 2.2): byte-pair encoding of bytes."""
    inner = tokenizers.Tokenizer(models.BPE.from_file(vocab, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=said.adds_prefix_space)
    inner.decoder = decoders.ByteLevel()
    return inner


def words(vocab: str, merges: str, said: Said) -> tokenizers.Tokenizer:
    """GPT's tokenizer (Radford et al. 2018): byte-pair encoding within lower-case words."""
    unknown = said.roles.get("unk_token") or GPT1_UNKNOWN
    inner = tokenizers.Tokenizer(
        models.BPE.from_file(
            vocab, merges, unk_token=unknown, end_of_word_suffix=END_OF_WORD, fuse_unk=False
        )
    )
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.BPEDecoder(suffix=END_OF_WORD)
    return inner


def add(inner: tokenizers.Tokenizer, said: Said) -> None:
    """Put in the tokens that are found in a text before all others, in the order of their ids.

    Raises:
        ModelError: one has an id that it cannot have here.
    """
    known = {one.content for one in said.added}
    roles = [Added(content) for content in said.roles.values() if content and content not in known]
    for one in (*sorted(said.added, key=lambda one: one.place), *roles):
        settings = {name: getattr(one, name) for name in SETTINGS}
        inner.add_tokens([AddedToken(one.content, **settings)])
        found = inner.token_to_id(one.content)
        if one.id not in {None, found}:
            what = f"the added token {one.content[:SHOWN]!r} should have the id {one.id}"
            raise ModelError(f"{said.where}: {what}, and comes to have {found}")


def put_around(inner: tokenizers.Tokenizer, said: Said) -> None:
    """Put the BOS token before every text and the EOS token after it, where that is said."""
    wanted = {"bos_token": said.adds_bos, "eos_token": said.adds_eos}
    put = {role: said.roles.get(role) if is_wanted else None for role, is_wanted in wanted.items()}
    ids = [(token, inner.token_to_id(token)) for token in put.values() if token]
    single = (put["bos_token"], "$A", put["eos_token"])
    if ids:
        inner.post_processor = processors.TemplateProcessing(
            single=[piece for piece in single if piece], special_tokens=ids
        )


def with_defaults(said: Said, inner: tokenizers.Tokenizer) -> Said:
    """The same with the special tokens that GPT-2 and GPT have if nothing else is said."""
    usual = {"bos_token": GPT2_END, "eos_token": GPT2_END, "unk_token": GPT2_END}
    if inner.normalizer is not None:
        usual = {"unk_token": GPT1_UNKNOWN}
    there = {role: token for role, token in usual.items() if inner.token_to_id(token) is not None}
    return replace(said, roles={**there, **said.roles})
