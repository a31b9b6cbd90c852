"""The tokenizer that the metadata of a GGUF file describe.

Byte-level BPE ("gpt2") with its merges and the name of the rule that cuts a text before them, or
pieces with scores ("llama"). The rules and what goes with each are those of llama.cpp,
src/llama-vocab.cpp; transformers spells them for the same library, integrations/gguf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from gptscope.errors import ModelError
from gptscope.model.files import short
from gptscope.model.formats.gguf_header import Strings
from gptscope.model.formats.sentencepiece import (
    SPACE,
    Pieces,
    add_special,
    merging_tokenizer,
    put_around,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START = "tokenizer.ggml."
CONTROL, USER = 3, 4  # types of tokens
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
START_OF_WORD = r"[^\r\n\p{L}\p{N}]?"
REST_WITH_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class Rule:
    """How a text is cut before pieces are merged, and what goes with it."""

    split: str = ""  # a regular expression; none: that of GPT-2
    digits: bool = False  # whether every digit stands alone
    whole_first: bool = False  # a word that is a token is not merged
    begins: bool = False  # whether a text begins with a token, where the file does not say
    composed: bool = False  # whether a text is put into Unicode's form NFC


GPT2, DIGITS = Rule(), Rule(digits=True)
LLAMA3 = Rule(rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}{{1,3}}|{REST}", whole_first=True, begins=True)
DBRX = Rule(LLAMA3.split)
QWEN2 = Rule(rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}|{REST}", composed=True)
STABLELM2 = Rule(QWEN2.split)
TEKKEN = Rule(
    rf"{START_OF_WORD}{UPPER}*{LOWER}+|{START_OF_WORD}{UPPER}+{LOWER}*|\p{{N}}|{REST_WITH_SLASH}",
    whole_first=True,
    begins=True,
)
GPT4O = Rule(
    rf"{START_OF_WORD}{UPPER}*{LOWER}+{CONTRACTIONS}?|{START_OF_WORD}{UPPER}+{LOWER}*"
    rf"{CONTRACTIONS}?|\p{{N}}{{1,3}}|{REST_WITH_SLASH}"
)
BLOOM = Rule(r" ?[^(\s|.,!?…。，、।۔،)]+")  # noqa: RUF001 - as Bloom has it
RULES: Mapping[str, Rule] = {  # tokenizer.ggml.pre
    **dict.fromkeys(("default", "gpt-2", "mpt", "olmo", "phi-2", "jais", "granite-docling"), GPT2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), DIGITS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"), LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe"), DBRX),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), QWEN2),
    **dict.fromkeys(("gpt-4o", "llama4"), GPT4O),
    "stablelm2": STABLELM2,
    "tekken": TEKKEN,
    "bloom": BLOOM,
}


def tokenizer_of(path: Path, values: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a file with these metadata.

    Raises:
        ModelError: it is of another kind, or contradicts itself.
    """
    told = {key.removeprefix(START): v for key, v in values.items() if key.startswith(START)}
    kind = told.get("model")
    builders = {"gpt2": byte_level, "llama": scored}
    if not isinstance(kind, str) or kind not in builders:
        raise refused(
            path, f"is of the kind {short(str(kind))}, and {', '.join(builders)} are read"
        )
    texts = told["tokens"]() if isinstance(told.get("tokens"), Strings) else []
    types = told.get("token_type", ())
    if not texts or len(types) not in (0, len(texts)):
        raise refused(path, f"has {len(texts)} tokens and {len(types)} types of them")
    try:
        return builders[kind](path, values, told, texts)
    except ModelError:
        raise
    except Exception as fault:  # the library raises nothing more special
        raise refused(path, f"cannot be read: {short(str(fault))}") from fault


def refused(path: Path, why: str) -> ModelError:
    """The fault of a tokenizer."""
    hint = "without it, the model can be given token ids: --ids 643,414,266"
    return ModelError(f"the tokenizer in {path} {why}", hint=hint)


def byte_level(
    path: Path, _: Mapping[str, Any], told: Mapping[str, Any], texts: Sequence[str]
) -> Tokenizer:
    """Byte-level BPE (Radford et al. 2019)."""
    name = told.get("pre", "default")
    rule = RULES.get(name)
    if rule is None:
        raise refused(path, f"cuts a text by the rule {short(str(name))}, which is not known")
    merges = told["merges"]() if isinstance(told.get("merges"), Strings) else []
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    vocab = {text: i for i, text in reversed([*enumerate(texts)])}
    tokenizer = Tokenizer(models.BPE(vocab, pairs, ignore_merges=rule.whole_first))
    if rule.composed:
        tokenizer.normalizer = normalizers.NFC()
    by_bytes = pre_tokenizers.ByteLevel(
        add_prefix_space=bool(told.get("add_space_prefix", False)), use_regex=not rule.split
    )
    before: list[pre_tokenizers.PreTokenizer] = []
    if rule.split:
        before = [pre_tokenizers.Split(Regex(rule.split), behavior="isolated")]
    elif rule.digits:
        before = [pre_tokenizers.Digits(individual_digits=True)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    add_special(tokenizer, texts, of_type(told, CONTROL), of_type(told, USER))
    put_around(tokenizer, texts, *ends(told, len(texts), begins=rule.begins))
    return tokenizer


def scored(
    path: Path, values: Mapping[str, Any], told: Mapping[str, Any], texts: Sequence[str]
) -> Tokenizer:
    """Pieces with scores; Gemma's are ranked by their place, as its own tokenizer ranks them."""
    scores = told.get("scores", ())
    if len(scores) != len(texts):
        raise refused(path, f"has {len(texts)} tokens and {len(scores)} scores of them")
    if str(values.get("general.architecture")).startswith("gemma"):
        scores = range(0, -len(texts), -1)
        texts = [SPACE * len(t) if t and not t.strip(" ") else t for t in texts]
    unknown = told.get("unknown_token_id", 0)
    first, last = ends(told, len(texts), begins=True)
    return merging_tokenizer(
        Pieces(
            texts,
            scores,
            of_type(told, CONTROL),
            of_type(told, USER),
            unknown=unknown if unknown in range(len(texts)) else 0,
            first=first,
            last=last,
            prefix=bool(told.get("add_space_prefix", True)),
        )
    )


def of_type(told: Mapping[str, Any], kind: int) -> frozenset[int]:
    """The ids of all tokens of this type."""
    types = enumerate(told["token_type"].tolist() if "token_type" in told else ())
    return frozenset(i for i, one in types if one == kind)


def ends(told: Mapping[str, Any], count: int, *, begins: bool) -> tuple[int | None, int | None]:
    """The ids that are put before a text and after it."""
    asked = (
        ("bos_token_id", told.get("add_bos_token", begins)),
        ("eos_token_id", told.get("add_eos_token", False)),
    )
    first, last = (
        told[key] if put and key in told and told[key] in range(count) else None
        for key, put in asked
    )
    return first, last
