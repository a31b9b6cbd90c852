"""Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), fitted to a text."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from training.configs import END_ID
from training.data import END
from training.errors import InputError

SMALLEST = 257  # the end token and the 256 bytes
AT_ONCE = 1024


def fit_tokenizer(stories: Iterable[str], vocab: int) -> Tokenizer:
    """A tokenizer of at most `vocab` tokens: `<|endoftext|>`, the 256 bytes, then merges."""
    if vocab < SMALLEST:
        raise InputError(f"a vocabulary of {vocab} is too small: it must hold {SMALLEST} or more")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    return tokenizer


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`; raises InputError if it cannot be read."""
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"cannot read {path}: {error}") from error


def encode(stories: Sequence[str], tokenizer: Tokenizer) -> np.ndarray:
    """All stories as one row of token ids, each preceded by `<|endoftext|>`."""
    rows = [
        np.array([END_ID, *encoding.ids], np.int32)
        for start in range(0, len(stories), AT_ONCE)
        for encoding in tokenizer.encode_batch_fast(stories[start : start + AT_ONCE])
    ]
    return np.concatenate(rows)
