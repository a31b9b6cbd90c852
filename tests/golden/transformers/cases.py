"""The micro models: what each is called, and its config as keyword arguments of transformers.

Sizes are odd and unequal, so that no two axes are alike: neither H and d_h, nor d and F.
"""

from dataclasses import dataclass
from typing import Any

from tests.golden.transformers import classic, modern
from tests.golden.transformers.modern import LONG, SHORT

Config = dict[str, Any]
LENGTH = 80  # tokens


@dataclass(frozen=True)
class Case:
    """One micro model."""

    name: str
    config: Config

    @property
    def family(self) -> str:
        """What transformers calls its family."""
        return str(self.config["model_type"])


CASES = tuple(
    Case(name, {"vocab_size": 43, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1} | config)
    for name, config in (classic.CONFIGS | modern.CONFIGS).items()
)

# Those that also carry a config as older checkpoints on the hub spell it, with what these add.
OLD_SPELLINGS: dict[str, Config] = {
    "gpt_neox": {},
    "gpt_neox-sequential": {},
    "llama": {},
    "llama-linear": {},
    "llama-dynamic": {},
    "llama-yarn": {},
    "llama-llama3": {},
    "mistral": {},
    "qwen3": {},
    "gemma2": {},
    "phi": {},
    "olmo2": {},
    "stablelm": {},
    "starcoder2": {},
    "granite": {},
    "smollm3": {},
    "qwen2-window": {},
    "qwen2-no-window": {"use_sliding_window": False, "sliding_window": 16},
    "gemma": {"hidden_act": "gelu"},  # the tanh form is meant
    "gemma3-linear": {"sliding_window_pattern": 3},
    "phi3-long": {},
    "phi3-partial": {
        "rope_scaling": {
            "type": "su",
            "short_factor": SHORT[:3],
            "long_factor": LONG[:3],
            "original_max_position_embeddings": 48,
        }
    },
}
