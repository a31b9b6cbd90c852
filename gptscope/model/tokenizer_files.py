"""Which files of a model folder are its tokenizer, and what others say of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.files import read_json, refuse_pointer, short, size_of
from gptscope.tokens import Added, Said, from_json, from_merges

if TYPE_CHECKING:
    from pathlib import Path

    from gptscope.tokens import Tokenizer

Json = dict[str, Any]
WHOLE = "tokenizer.json"
PAIR = ("vocab.json", "merges.txt")
LARGEST = 100_000_000  # bytes of one; those of 256,000 tokens have 35 million
TEMPLATES = ("chat_template.jinja", "chat_template.json")
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
DIGITS = 9  # of an id
FLAGS = ("special", "single_word", "lstrip", "rstrip", "normalized")


def load_tokenizer(folder: Path, bos_id: int | None = None) -> Tokenizer | None:
    """The tokenizer of a model folder: its tokenizer.json, or its vocab.json and merges.txt.

    `bos_id` is the BOS token that the model's config names; without one, the tokenizer's own
    counts. A folder without these files has none.

    Raises:
        ModelError: a file cannot be read or understood.
    """
    if os.path.lexists(folder / WHOLE):
        check(folder / WHOLE)
        return from_json(folder / WHOLE, said(folder, bos_id))
    vocab, merges = (folder / name for name in PAIR)
    if not (os.path.lexists(vocab) and os.path.lexists(merges)):
        return None
    check(vocab)
    check(merges)
    return from_merges(vocab, merges, said(folder, bos_id, added=True))


def check(path: Path) -> None:
    """A file that is read as a whole is a plain one, and not too long.

    Raises:
        ModelError: it is not, or it only stands for the file itself.
    """
    if size_of(path) > LARGEST:
        raise ModelError(f"{path} is longer than {LARGEST:,} bytes, and is not read")
    refuse_pointer(path)


def said(folder: Path, bos_id: int | None, *, added: bool = False) -> Said:
    """What the files beside the vocabulary say; `added` tokens only where they are asked for.

    Raises:
        ModelError: one of them cannot be read, or says something else.
    """
    paths = [folder / name for name in ("tokenizer_config.json", "special_tokens_map.json")]
    config, special = map(optional, paths)
    named = roles(paths[1], special) | roles(paths[0], config)
    extra = [*others(paths[1], special), *others(paths[0], config)]
    return Said(
        roles=named,
        bos_id=bos_id,
        has_chat_template=bool(config.get("chat_template"))
        or any((folder / name).is_file() for name in TEMPLATES),
        adds_bos=config.get("add_bos_token") is True,
        adds_eos=config.get("add_eos_token") is True,
        adds_prefix_space=config.get("add_prefix_space") is True,
        added=added_tokens(folder, config, {*named.values(), *extra}, extra) if added else (),
        where=str(folder),
    )


def optional(path: Path) -> Json:
    """The object in a JSON file, empty where there is no file."""
    return read_json(path) if os.path.lexists(path) else {}


def roles(path: Path, values: Json) -> dict[str, str | None]:
    """The special tokens that a file names by what they are for.

    Raises:
        ModelError: one is no token.
    """
    return {role: content(path, role, values[role]) for role in ROLES if role in values}


def others(path: Path, values: Json) -> list[str]:
    """The special tokens that a file names beside those: a list, or an object with names.

    Raises:
        ModelError: one is no token.
    """
    found: list[str | None] = []
    for key in ("additional_special_tokens", "extra_special_tokens"):
        listed = values.get(key) or []
        listed = list(listed.values()) if isinstance(listed, dict) else listed
        if not isinstance(listed, list):
            raise ModelError(f"{path}: {key} must be a list")
        found += [content(path, key, one) for one in listed]
    return [one for one in found if one]


def content(path: Path, key: str, value: object) -> str | None:
    """The string of a token: it stands alone, or in an object beside its settings.

    Raises:
        ModelError: it is something else.
    """
    found = value.get("content") if isinstance(value, dict) else value
    if value is None:
        return None
    if isinstance(found, str):
        return found
    raise ModelError(f"{path}: {key} must be a string, not {short(repr(value))}")


def added_tokens(
    folder: Path, config: Json, special: set[str | None], extra: list[str]
) -> tuple[Added, ...]:
    """The tokens that are found in a text before all others; what is said first of one counts.

    Raises:
        ModelError: one is written in a way that is not understood.
    """
    path = folder / "tokenizer_config.json"
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise ModelError(f"{path}: added_tokens_decoder must be an object")
    found = [added_token(path, number, one) for number, one in decoder.items()]
    path = folder / "added_tokens.json"
    for text, number in optional(path).items():
        is_special = text in special
        flags = {"content": text, "special": is_special, "normalized": not is_special}
        found.append(added_token(path, number, flags))
    found += map(Added, extra)
    return tuple({one.content: one for one in reversed(found)}.values())[::-1]


def added_token(path: Path, number: object, flags: object) -> Added:
    """One added token: its id, and an object with its content and settings.

    Raises:
        ModelError: it is written in another way.
    """
    text = content(path, "an added token", flags)
    digits = str(number)
    if not text or not isinstance(flags, dict) or not digits.isdecimal() or len(digits) > DIGITS:
        what = f"an added token must have a content and an id, not {short(repr(flags))}"
        raise ModelError(f"{path}: {what} and {short(repr(number))}")
    settings = {flag: flags[flag] is True for flag in FLAGS if flag in flags}
    return Added(text, int(digits), **{"special": False, "normalized": True, **settings})
