"""The families of GPT, each a file that renames, turns and folds weights until all look alike.

A family is a module with `matches(config, names)`, `rename(name)` and `build(config, tensors)`. It
is imported when a model is of its kind.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

FAMILIES: Mapping[str, str] = {  # as `model_type` of a config.json names it -> its file
    "bloom": "bloom",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3_text",
    "gpt2": "gpt2",
    "gpt_neo": "gpt_neo",
    "gpt_neox": "neox",
    "gptj": "gptj",
    "granite": "granite",
    "llama": "llama",
    "mistral": "mistral",
    "olmo2": "olmo2",
    "openai-gpt": "gpt1",
    "opt": "opt",
    "phi": "phi",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "smollm3": "smollm3",
    "stablelm": "stablelm",
    "stablelm_epoch": "stablelm",  # before transformers knew it
    "starcoder2": "starcoder2",
    "toy": "toy",
}
# Told by their tensors; the first comes first, since it has all that tells the second.
UNNAMED = tuple(dict.fromkeys(("gpt1", "gpt2", *FAMILIES.values(), "visualized")))


def family(file: str) -> ModuleType:
    """The module of a family."""
    return import_module(f"{__name__}.{file}")
