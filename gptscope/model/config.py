"""A model's config.json: read, and every key accounted for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

# Keys that say nothing about the numbers of a pass: history, training, sampling, other heads.
IGNORED = {
    "_attn_implementation_autoset",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "auto_map",
    "attn_pdrop",
    "bos_token_id",
    "chunk_size_feed_forward",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "keys_to_ignore_at_inference",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "model_type",
    "n_special",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "predict_special_tokens",
    "prefix",
    "problem_type",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
}


class Config:
    """The settings of a model, each with its type checked, and every one of them asked for."""

    def __init__(self, values: dict[str, Any], source: str) -> None:
        """`source` is the name of the file, for messages."""
        self._values, self.source, self._asked = values, source, set[str]()

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self._values.get(key) is not None

    def says(self, key: str, value: object) -> bool:
        """Whether the key has this value."""
        return bool(self._values.get(key) == value)

    def whole(self, *keys: str, default: int | None = None) -> int:
        """A whole number of at least 1, under the first of these keys that is there."""
        value = self._first(keys, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ModelError(f"{self.source}: {keys[0]} is {value!r}, not a whole number above 0")
        return value

    def number(self, *keys: str, default: float) -> float:
        """A positive number, under the first of these keys that is there."""
        value = self._first(keys, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
            raise ModelError(f"{self.source}: {keys[0]} is {value!r}, not a positive number")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._first((key,), default)
        if not isinstance(value, bool):
            raise ModelError(f"{self.source}: {key} is {value!r}, not true or false")
        return value

    def word(self, key: str, default: str) -> str:
        """A string."""
        value = self._first((key,), default)
        if not isinstance(value, str):
            raise ModelError(f"{self.source}: {key} is {value!r}, not a word")
        return value

    def token_ids(self, key: str) -> tuple[int, ...]:
        """No, one or several token ids."""
        value = self._first((key,), [])
        ids = value if isinstance(value, list) else [value]
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise ModelError(f"{self.source}: {key} is {value!r}, not a token id")
        return tuple(ids)

    def finish(self) -> None:
        """Every key must be understood, or known to change nothing.

        Raises:
            ModelError: it names a key that may change the computation.
        """
        for key, value in self._values.items():
            if key not in self._asked | IGNORED and value not in (None, False, {}, []):
                raise ModelError(
                    f"{self.source}: {key} = {value!r} is not understood, and may matter",
                    hint=f"if {key} does not change the computation, take it out of the file",
                )

    def _first(self, keys: tuple[str, ...], default: Any) -> Any:  # noqa: ANN401
        self._asked.update(keys)
        found = (self._values[key] for key in keys if self.has(key))
        value = next(found, default)
        if value is None:
            raise ModelError(f"{self.source} does not say {keys[0]}")
        return value


def read_config(path: Path) -> Config:
    """Read a config.json.

    Raises:
        ModelError: it cannot be read, or is not a JSON object.
    """
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as fault:
        raise ModelError(f"{path} cannot be read: {fault}") from fault
    if not isinstance(values, dict):
        raise ModelError(f"{path} is not a JSON object")
    return Config(values, path.name)
