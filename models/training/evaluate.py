"""The held-out loss: nats a model needs for a token, or a byte, of stories it never saw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import nn

from training.loop import loss_of
from training.progress import bar
from training.stream import cut
from training.tokenizer import encode

AT_ONCE = 16


@dataclass(frozen=True)
class HeldOut:
    """The mean loss over a text, and its size (end tokens are tokens, but not bytes)."""

    nats_per_token: float
    stories: int
    tokens: int
    bytes: int

    def __str__(self) -> str:
        """The loss in its three units, in one line."""
        nats = self.nats_per_token * self.tokens / self.bytes
        return (
            f"held-out loss {self.nats_per_token:.4f} nats per token = {nats:.4f} nats per byte = "
            f"{nats / math.log(2):.4f} bits per byte "
            f"({self.stories:,} stories, {self.tokens:,} tokens, {self.bytes:,} bytes)"
        )


@torch.no_grad()
def held_out_loss(
    model: nn.Module, tokenizer: Tokenizer, stories: Sequence[str], ctx: int
) -> HeldOut:
    """The loss over all stories in a row, cut into whole windows of ctx (a shorter text: one)."""
    ids = encode(stories, tokenizer)
    windows = cut(ids, min(ctx, len(ids) - 1))
    batches = [windows[at : at + AT_ONCE] for at in range(0, len(windows), AT_ONCE)]
    model.eval()
    shown = bar(batches, "evaluating", " batches")
    nats = math.fsum(loss_of(model, batch, "sum").item() for batch in shown)
    size = sum(len(story) for story in stories)
    return HeldOut(nats / windows[:, 1:].size, len(stories), len(ids), size)
