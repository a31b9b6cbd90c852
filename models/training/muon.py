"""Muon: orthogonalised momentum (Keller Jordan 2024, kellerjordan.github.io/posts/muon)."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.optim import Optimizer

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
STEPS = 5


def orthogonalised(matrices: Tensor) -> Tensor:
    """Each M = U S V' as about U V': from M / |M|, five times X <- (a + b XX' + c (XX')^2) X."""
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        square = x @ x.mT  # [n, rows, columns] -> [n, rows, rows]
        mix = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, mix, x, beta=a)
    return x.mT if tall else x


def by_shape(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """The parameters that have a gradient, those of one shape together."""
    groups: dict[torch.Size, list[Tensor]] = defaultdict(list)
    for parameter in parameters:
        if parameter.grad is not None:
            groups[parameter.shape].append(parameter)
    return list(groups.values())


class Muon(Optimizer):
    """W <- (1 - lr decay) W - lr sqrt(max(1, rows / columns)) orthogonalised(Nesterov momentum)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.05,
    ) -> None:
        """The parameters are matrices [out, in]."""
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step from the gradients; matrices of one shape are orthogonalised in one go."""
        loss = closure() if closure else None
        for group in self.param_groups:
            for alike in by_shape(group["params"]):
                ahead = torch.stack([self.ahead(weight, group["momentum"]) for weight in alike])
                rows, columns = alike[0].shape
                rate = group["lr"] * max(1, rows / columns) ** 0.5
                for weight, change in zip(alike, orthogonalised(ahead), strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(change, alpha=rate)
        return loss

    def ahead(self, weight: Tensor, momentum: float) -> Tensor:
        """Nesterov's look ahead: m <- mix(m, gradient), then mix(gradient, m) once more."""
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(weight.grad, 1 - momentum)
        return weight.grad.lerp(state["momentum"], momentum)  # type: ignore[union-attr]
