"""The same weights and tokens in gptscope and in TransformerLens."""

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file
from transformer_lens.model_bridge import TransformerBridge

import gptscope

ROOT = Path(__file__).parents[3]
CLEAN, CORRUPT = "Lily wanted to play with her", "Tom wanted to play with his"
# As TransformerLens' own load-time processing, but for what changes the numbers asked for.
FOLDED = {"center_unembed": False, "fold_value_biases": False}
PLAIN = {"no_processing": True}


@dataclass(frozen=True, eq=False)
class Opened:
    """A model and its tokens; ids and arrays have no batch."""

    name: str
    folder: Path
    ids: list[int]
    corrupt: list[int]  # as many

    @cached_property
    def model(self) -> gptscope.Model:
        """The model in gptscope."""
        return gptscope.load(self.folder)

    @cached_property
    def trace(self) -> gptscope.Trace:
        """The pass in gptscope, with everything kept."""
        return gptscope.trace(self.model, self.ids)

    @cached_property
    def plain(self) -> Any:
        """The model in TransformerLens, its weights as they are stored."""
        return bridge(self.folder, **PLAIN)

    @cached_property
    def folded(self) -> Any:
        """The same with the gains of the norms folded into the matrices that read them."""
        return bridge(self.folder, **FOLDED)

    @cached_property
    def default(self) -> Any:
        """The same with all the processing that TransformerLens does by itself."""
        return bridge(self.folder)

    def cache(self, which: Any, ids: list[int] | None = None) -> Any:
        """All values of a pass in one of the three."""
        with torch.no_grad():
            return which.run_with_cache(torch.tensor([ids or self.ids]))[1]

    @cached_property
    def plain_cache(self) -> Any:
        """All values of the pass, weights as they are stored."""
        return self.cache(self.plain)

    @cached_property
    def last(self) -> int:
        """The position that is asked about."""
        return len(self.ids) - 1

    @cached_property
    def answer(self) -> int:
        """What the pass finds likeliest."""
        return int(self.trace.logits[-1].argmax())

    @cached_property
    def against(self) -> int:
        """What it finds likeliest after that."""
        return int(np.argsort(self.trace.logits[-1])[-2])

    @cached_property
    def twice(self) -> list[int]:
        """Random tokens and the same again."""
        n = (self.model.spec.n_ctx - 2) // 2  # detect_head takes no text that fills the context
        half = np.random.default_rng(0).permutation(np.arange(1, self.model.spec.n_vocab))
        return [*half[:n].tolist()] * 2


def bridge(folder: Path, **processing: bool) -> Any:
    """The model of a folder in TransformerLens."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
        opened = TransformerBridge.boot_transformers(
            str(folder), hf_model=theirs.eval(), device="cpu", dtype=torch.float32
        )
        opened.enable_compatibility_mode(disable_warnings=True, **processing)
    return opened


def micro() -> Opened:
    """A GPT-2 of 2 layers and 4 heads with large random weights; two tokens are corrupt."""
    folder = ROOT / "tests" / "golden" / "gpt2"
    ids = load_file(folder / "trace.safetensors")["ids"].tolist()
    return Opened("micro GPT-2", folder, ids, [ids[0], ids[1] - 1, *ids[2:-1], ids[-1] - 1])


def tiny() -> Opened:
    """The shipped model, and two sentences that differ in a name and a pronoun."""
    folder = ROOT / "models" / "tiny"
    encode = gptscope.load(folder).tokenizer.encode
    return Opened("models/tiny", folder, list(encode(CLEAN)), list(encode(CORRUPT)))


MODELS: Mapping[str, Callable[[], Opened]] = {"micro GPT-2": micro, "models/tiny": tiny}
