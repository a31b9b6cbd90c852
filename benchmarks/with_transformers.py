"""The side of transformers in forward.py; each function runs in a process of its own."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import GPT2LMHeadModel
from transformers.utils import logging

if TYPE_CHECKING:
    from collections.abc import Sequence

logging.disable_progress_bar()
KEEP = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}


@cache
def model(folder: str, attention: str | None) -> Any:  # noqa: ANN401
    """The model, opened once, with "eager" attention or the library's own choice (None)."""
    return GPT2LMHeadModel.from_pretrained(folder, attn_implementation=attention).eval()


def threads() -> str:
    """How many threads PyTorch uses when nobody says otherwise."""
    return str(torch.get_num_threads())


def save_logits(folder: str, ids: Sequence[int], path: str) -> None:
    """Write the logits [T, V] of one pass to a .npy file."""
    with torch.inference_mode():
        out = model(folder, "eager")(torch.tensor([ids]), **KEEP)
    np.save(path, out.logits[0].numpy())


def forward(folder: str, ids: Sequence[int]) -> float:
    """Seconds for one pass that keeps logits, attention weights and hidden states."""
    opened, tokens = model(folder, "eager"), torch.tensor([ids])
    with torch.inference_mode():
        begin = time.perf_counter()
        kept = opened(tokens, **KEEP)
        taken = time.perf_counter() - begin
    del kept  # giving memory back is not part of the pass
    return taken


def generate(folder: str, ids: Sequence[int], n: int) -> float:
    """Seconds for each of up to n new tokens, greedy, the pass over the prompt included."""
    begin = time.perf_counter()
    made = greedy_ids(folder, ids, n)
    return (time.perf_counter() - begin) / len(made)


def greedy_ids(folder: str, ids: Sequence[int], n: int) -> list[int]:
    """The likeliest continuation."""
    tokens = torch.tensor([ids])
    settings = {"max_new_tokens": n, "do_sample": False, "use_cache": True}
    with torch.inference_mode():
        out = model(folder, None).generate(
            tokens, attention_mask=torch.ones_like(tokens), **settings
        )
    new: list[int] = out[0, len(ids) :].tolist()
    return new
