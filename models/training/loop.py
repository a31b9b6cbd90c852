"""The training loop: losses one by one, a progress bar, checkpoints, and a clean stop on Ctrl-C."""

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from training.checkpoint import State, save_checkpoint
from training.errors import InputError
from training.progress import token_bar
from training.recipe import optimizers, rate, set_rate
from training.stream import Batches, Place


@dataclass
class Run:
    """All that changes while a model learns."""

    model: nn.Module
    optimizers: list[Optimizer]
    step: int = 0
    place: Place = field(default_factory=Place)
    smoothing: float = 0.0

    def state(self) -> State:
        """What a checkpoint must hold for the run to go on as if nothing had happened."""
        return {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "place": tuple(self.place),
            "rng": torch.get_rng_state(),
        }

    def restore(self, state: State) -> None:
        """Takes up a saved state."""
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.place = state["step"], Place(*state["place"])
        torch.set_rng_state(state["rng"])


@dataclass(frozen=True)
class Plan:
    """How long to learn, and what to save where; `fixed` goes into every checkpoint."""

    steps: int
    every: int
    path: Path
    fixed: State

    def is_saved(self, step: int) -> bool:
        """Whether a checkpoint is due after this many steps."""
        return step % self.every == 0 or step == self.steps


def new_run(model: nn.Module) -> Run:
    """A run at its beginning, with the optimizers of the recipe."""
    return Run(model, optimizers(model))


def loss_of(
    model: nn.Module, windows: np.ndarray, reduction: str = "mean", smoothing: float = 0.0
) -> Tensor:
    """Cross entropy in nats of every next token in windows [B, T + 1].

    With smoothing, that share of the target is spread over all tokens (Vaswani et al. 2017, 5.4).
    """
    device = next(model.parameters()).device
    ids = torch.from_numpy(windows).long().to(device)
    logits = model(ids[:, :-1])  # [B, T] -> [B, T, V]
    return functional.cross_entropy(
        logits.flatten(0, 1),
        ids[:, 1:].flatten(),
        reduction=reduction,
        label_smoothing=smoothing,
    )


def update(run: Run, windows: np.ndarray, share: float) -> float:
    """One step of all optimizers at a share of the full rate; returns the loss before it."""
    set_rate(run.optimizers, share)
    loss = loss_of(run.model, windows, smoothing=run.smoothing)
    loss.backward()
    for optimizer in run.optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item()


def learn(run: Run, stream: Batches, steps: int) -> Iterator[float]:
    """Steps on to `steps`, yielding the loss (nats per token) after each."""
    batches = stream.batches(run.place)
    while run.step < steps:
        windows, place = next(batches)
        loss = update(run, windows, rate(run.step, steps))
        if not math.isfinite(loss):
            raise InputError(f"the loss is no longer a number at step {run.step}")
        run.step, run.place = run.step + 1, place
        yield loss


def shown(run: Run, stream: Batches, steps: int, bar: Any) -> Iterator[None]:  # noqa: ANN401
    """Steps on to `steps`, with the smoothed loss in the bar (tqdm has no types)."""
    mean = 0.0
    for loss in learn(run, stream, steps):
        mean = 0.95 * mean + 0.05 * loss if mean else loss
        bar.set_postfix(step=run.step, loss=f"{mean:.3f}", refresh=False)
        bar.update(stream.batch * stream.ctx)
        yield


@contextmanager
def held_interrupt() -> Iterator[Event]:
    """Ctrl-C only sets the event, so that no step is cut in two; a second one stops at once."""
    asked = Event()
    before = signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def train(run: Run, stream: Batches, plan: Plan) -> None:
    """Learns to the end, saving as planned; Ctrl-C saves, then raises KeyboardInterrupt."""
    tokens = stream.batch * stream.ctx
    with token_bar(run.step * tokens, plan.steps * tokens) as bar, held_interrupt() as asked:
        for _ in shown(run, stream, plan.steps, bar):
            if plan.is_saved(run.step) or asked.is_set():
                save_checkpoint(plan.path, plan.fixed | run.state())
            if asked.is_set():
                raise KeyboardInterrupt(f"stopped and saved at step {run.step} of {plan.steps}")
