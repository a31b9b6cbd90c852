"""The side of TransformerLens in why.py: functions in a process of its own, or a whole process.

python benchmarks/why_with_transformer_lens.py lens FOLDER 1,2,3 1000
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.tools.analysis.direct_logit_attribution import direct_logit_attribution
from transformer_lens.tools.analysis.logit_lens import logit_lens
from transformers import GPT2LMHeadModel
from transformers.utils import logging

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

logging.disable_progress_bar()
STORED = {"no_processing": True}
FOLDED = {"center_unembed": False, "fold_value_biases": False}  # as heads are split in gptscope


@cache
def model(folder: str, *, stored: bool) -> Any:  # noqa: ANN401
    """The model, opened once: its weights as they are stored, or with norms folded into them."""
    theirs = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    with contextlib.redirect_stdout(io.StringIO()):
        bridge = TransformerBridge.boot_transformers(
            folder, hf_model=theirs, device="cpu", dtype=torch.float32
        )
        bridge.enable_compatibility_mode(disable_warnings=True, **(STORED if stored else FOLDED))
    return bridge


def one_pass(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """A pass: the logit of the answer."""
    return [float(model(folder, stored=True)(torch.tensor([ids]))[0, -1, answer])]


def lens(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """What every layer would have said after every token: the probability of the answer."""
    bridge, tokens = model(folder, stored=True), torch.tensor([ids])
    found = logit_lens(bridge, tokens, positions=None, targets=answer, return_type="probs")
    return list(found.values.ravel().tolist())


def attribution(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """The answer's logit split over the heads, and the rest in one: the terms of the heads."""
    bridge = model(folder, stored=False)
    found = direct_logit_attribution(bridge, torch.tensor([ids]), answer, unit="head")
    return list(found.attribution[:-1, 0].tolist())


def sweep(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """The answer's logit after each head was made 0."""
    bridge, tokens = model(folder, stored=True), torch.tensor([ids])
    found = []
    for layer, head in product(range(bridge.cfg.n_layers), range(bridge.cfg.n_heads)):
        hook = (f"blocks.{layer}.attn.hook_z", partial(zeroed, head=head))
        found.append(float(bridge.run_with_hooks(tokens, fwd_hooks=[hook])[0, -1, answer]))
    return found


def zeroed(value: torch.Tensor, head: int, hook: Any) -> torch.Tensor:  # noqa: ANN401, ARG001
    """The value of all heads, one of them 0."""
    value[:, :, head] = 0
    return value


QUESTIONS: Mapping[str, Callable[[str, Sequence[int], int], list[float]]] = {
    "pass": one_pass,
    "lens": lens,
    "attribution": attribution,
    "sweep": sweep,
}


def threads() -> str:
    """How many threads PyTorch uses when nobody says otherwise."""
    return str(torch.get_num_threads())


def ask(question: str, folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """The numbers of one question."""
    with torch.inference_mode():
        return QUESTIONS[question](folder, ids, answer)


def seconds(question: str, folder: str, ids: Sequence[int], answer: int) -> float:
    """How long one question takes, the model being open."""
    model(folder, stored=question != "attribution")
    begin = time.perf_counter()
    ask(question, folder, ids, answer)
    return time.perf_counter() - begin


def main() -> None:
    """Print the numbers of one question."""
    question, folder, ids, answer = sys.argv[1:]
    print(*ask(question, folder, [int(one) for one in ids.split(",")], int(answer)))


if __name__ == "__main__":
    main()
