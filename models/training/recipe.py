"""Which optimizer moves which weights, and how fast at each step."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn
from torch.optim import AdamW, Optimizer

from training.muon import Muon

BETAS = (0.9, 0.98)
WARM_UP = 200
CONSTANT = 0.4
LAST = 0.02


def groups(chosen: list[Optimizer]) -> Iterator[dict[str, Any]]:
    """The groups of weights that share their settings, of all optimizers."""
    for optimizer in chosen:
        yield from optimizer.param_groups


def optimizers(model: nn.Module) -> list[Optimizer]:
    """Muon for the matrices inside `model.blocks`, AdamW for embeddings, norms and biases."""
    inside = {id(weight) for weight in model.get_submodule("blocks").parameters()}
    matrices = [w for w in model.parameters() if w.ndim > 1 and id(w) in inside]
    tables = [w for w in model.parameters() if w.ndim > 1 and id(w) not in inside]
    vectors = [w for w in model.parameters() if w.ndim == 1]
    adam = AdamW(
        [
            {"params": tables, "lr": 4e-3, "weight_decay": 0.02},
            {"params": vectors, "lr": 3e-3, "weight_decay": 0.0},
        ],
        betas=BETAS,
        fused=True,
    )
    return at_full_rate(Muon(matrices, lr=0.02, momentum=0.95, weight_decay=0.05), adam)


def adam_alone(
    model: nn.Module, lr: float, decay: float, decays: Mapping[str, float]
) -> list[Optimizer]:
    """AdamW for all weights, enough at width 8; those with a name in `decays` decay at its rate."""
    by_decay: dict[float, list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        own = next((rate for part, rate in decays.items() if part in name), decay)
        by_decay.setdefault(own, []).append(weight)
    found = [{"params": weights, "weight_decay": rate} for rate, weights in by_decay.items()]
    return at_full_rate(AdamW(found, lr, BETAS, fused=True))


def at_full_rate(*chosen: Optimizer) -> list[Optimizer]:
    """The optimizers, their rates noted as the full ones that `set_rate` takes shares of."""
    for group in groups(list(chosen)):
        group["full_lr"] = group["lr"]
    return list(chosen)


def rate(step: int, steps: int) -> float:
    """Share of the full rate: up in 200 steps (at most a tenth), full for 40 %, down to 0.02."""
    warm = max(1, min(WARM_UP, steps // 10))
    turn = warm + int(CONSTANT * steps)
    if step < warm:
        return (step + 1) / warm
    if step < turn:
        return 1.0
    return 1 - (1 - LAST) * (step + 1 - turn) / (steps - turn)


def set_rate(chosen: list[Optimizer], share: float) -> None:
    """Gives every group that share of its full rate."""
    for group in groups(chosen):
        group["lr"] = share * group["full_lr"]
