"""What transformers reads from a config, however it is spelt."""

import json
from pathlib import Path
from typing import Any

import transformers

Config = dict[str, Any]
SPELLING = {
    "_name_or_path",
    "_sliding_window_pattern",
    "architectures",
    "dtype",
    "partial_rotary_factor",
    "sliding_window_pattern",
    "transformers_version",
}


def meaning(config: Config) -> Config:
    """The config with every default filled in, without the words that older versions used."""
    copy = json.loads(json.dumps(config))
    read = transformers.AutoConfig.for_model(copy.pop("model_type"), **copy).to_dict()
    rope = read.get("rope_parameters") or {}
    rope.pop("type", None)
    if rope.get("partial_rotary_factor") == 1:
        del rope["partial_rotary_factor"]
    return {key: value for key, value in read.items() if key not in SPELLING}


def shortened(config: Config) -> Config:
    """Only what must be said: every key that has its default is left out."""
    whole, short = meaning(config), dict(config)
    for key in sorted(config.keys() - {"model_type"}):
        without = {k: v for k, v in short.items() if k != key}
        if could_mean(without, whole):
            short = without
    return short


def could_mean(config: Config, whole: Config) -> bool:
    """Whether transformers accepts this config, and understands the whole of it."""
    try:
        return meaning(config) == whole
    except Exception:  # noqa: BLE001 - configs are checked by many hands
        return False


def assert_same_meaning(path: Path) -> None:
    """The config means what the one beside it means, which transformers wrote."""
    old, new = (
        meaning(json.loads(file.read_text(encoding="utf-8")))
        for file in (path, path.with_name("config.json"))
    )
    differing = {k: (old.get(k), new.get(k)) for k in old | new if old.get(k) != new.get(k)}
    assert not differing, (path, differing)
