"""A model's config.json: read, and every key accounted for."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.files import read_json, short

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 31  # above every size and id of a model
MOST_LAYERS = 10_000
# Keys that say nothing about the numbers of a pass: history, training, sampling, other heads.
IGNORED = {
    "_attn_implementation_autoset",
    "_name_or_path",
    "_num_labels",
    "activation_dropout",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "auto_map",
    "attn_pdrop",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "embd_pdrop",
    "embed_dropout",
    "embedding_dropout",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "init_std",
    "initializer_range",
    "is_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "layerdrop",
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
    "pretraining_tp",
    "problem_type",
    "repetition_penalty",
    "resid_dropout",
    "resid_pdrop",
    "residual_dropout",
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
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
}


class Config:
    """The settings of a model, each with its type checked, and every one of them asked for."""

    def __init__(self, values: dict[str, Any], source: str) -> None:
        """`source` is the name of the file, for messages."""
        self.values, self.source, self._asked = values, source, set[str]()
        self._sections: dict[str, Config] = {}

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self.values.get(key) is not None

    def assume(self, **defaults: Any) -> None:  # noqa: ANN401
        """What a family means where its config leaves a key out; null is not left out."""
        self.values = defaults | self.values

    def says(self, key: str, value: object) -> bool:
        """Whether the key has this value."""
        return bool(self.values.get(key) == value)

    def whole(self, *keys: str, default: int | None = None) -> int:
        """A whole number of at least 1, under the first of these keys that is there."""
        value = self._first(keys, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._not(keys[0], value, "a whole number above 0")
        if value >= LARGEST:
            raise self._not(keys[0], value, f"below {LARGEST:,}, as every size of a model is")
        return value

    def layers(self, *keys: str, default: int | None = None) -> int:
        """The number of blocks: a list with an entry for each must fit into memory."""
        value = self.whole(*keys, default=default)
        if value > MOST_LAYERS:
            raise self._not(keys[0], value, f"at most {MOST_LAYERS:,}")
        return value

    def number(self, *keys: str, default: float | None = None) -> float:
        """A positive number, under the first of these keys that is there."""
        value = self._first(keys, default)
        if not is_positive(value):
            raise self._not(keys[0], value, "a positive number")
        return float(value)

    def limit(self, key: str) -> float | None:
        """A positive number, or None where it is not said or 0."""
        self.ask(key)
        return self.number(key) if self.values.get(key) else None

    def numbers(self, key: str, n: int) -> tuple[float, ...]:
        """So many positive numbers."""
        value = self._first((key,), None)
        if not isinstance(value, list) or len(value) != n or not all(map(is_positive, value)):
            raise self._not(key, value, f"{n} positive numbers")
        return tuple(map(float, value))

    def words(self, key: str, n: int) -> tuple[str, ...] | None:
        """So many words, or None where they are not said."""
        self.ask(key)
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != n or any(type(w) is not str for w in value):
            raise self._not(key, value, f"{n} words, one for each layer")
        return tuple(value)

    def flags(self, key: str, n: int) -> tuple[bool, ...] | None:
        """So many times true or false, also written 1 or 0; None where they are not said."""
        self.ask(key)
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != n or any(v not in (0, 1) for v in value):
            raise self._not(key, value, f"{n} times true or false, one for each layer")
        return tuple(map(bool, value))

    def section(self, key: str) -> Config:
        """The settings under a key, which are accounted for as well; none where it is not said."""
        value = self._first((key,), {})
        if not isinstance(value, dict):
            raise self._not(key, value, "an object with settings")
        if key not in self._sections:
            self._sections[key] = Config(value, f"{key} of {self.source}")
        return self._sections[key]

    def anything(self, key: str, default: Any) -> Any:  # noqa: ANN401
        """What a key says, of whatever kind: who asks must check it."""
        return self._first((key,), default)

    def ask(self, *keys: str) -> None:
        """These keys are understood, whatever they say."""
        self._asked.update(keys)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._first((key,), default)
        if not isinstance(value, bool):
            raise self._not(key, value, "true or false")
        return value

    def word(self, *keys: str, default: str) -> str:
        """A string, under the first of these keys that is there."""
        value = self._first(keys, default)
        if not isinstance(value, str) or short(value) != value:
            raise self._not(keys[0], value, "a word")
        return value

    def token_ids(self, key: str) -> tuple[int, ...]:
        """No, one or several token ids."""
        value = self._first((key,), [])
        ids = value if isinstance(value, list) else [value]
        if not all(type(i) is int and -LARGEST < i < LARGEST for i in ids):
            raise self._not(key, value, "a token id")
        return tuple(ids)

    def finish(self) -> None:
        """Every key must be understood, or known to change nothing.

        Raises:
            ModelError: it names a key that may change the computation.
        """
        for key, value in self.values.items():
            if key not in self._asked | IGNORED and value not in (None, False, {}, []):
                name, said = short(key), reprlib.repr(value)
                raise ModelError(
                    f"{self.source}: {name} = {said} is not understood, and may matter",
                    hint=f"if {name} does not change the computation, take it out of the file",
                )
        for section in self._sections.values():
            section.finish()

    def _not(self, key: str, value: object, wanted: str) -> ModelError:
        return ModelError(f"{self.source}: {key} is {reprlib.repr(value)}, not {wanted}")

    def _first(self, keys: tuple[str, ...], default: Any) -> Any:  # noqa: ANN401
        self._asked.update(keys)
        found = (self.values[key] for key in keys if self.has(key))
        value = next(found, default)
        if value is None:
            raise ModelError(f"{self.source} does not say {keys[0]}")
        return value


def is_positive(value: object) -> bool:
    """Whether this is a number above 0 that a model may say."""
    return type(value) in (int, float) and 1e-30 < value < 1e13  # type: ignore[operator]


def read_config(path: Path) -> Config:
    """Read a config.json.

    Raises:
        ModelError: it cannot be read, or is not a JSON object.
    """
    return Config(read_json(path), path.name)
