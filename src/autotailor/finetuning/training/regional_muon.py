"""Muon for weights of which a step trains a part: the work of a step follows the size of that part."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
from timm.optim.muon import get_lr_scale, zeropower_via_newtonschulz
from timm.optim.nadamw import NAdamW

from autotailor.finetuning.training.precision import resolve
from autotailor.ir.execution.modules.partial_gradients import PartialGradient, PartialGradients
from autotailor.ir.execution.weight_plan import view

MOMENTUM, BETAS, EPSILON = 0.95, (0.9, 0.95), 1e-7
"""Of the momentum of matrices, and of NAdamW for other parameters, as timm's Muon has them."""
COEFFICIENTS = [
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
]
"""Of the five Newton-Schulz steps (You, 2025, https://leloykun.github.io/ponder/muon-opt-coeffs)."""
SHORTEST_SIDE, LARGEST_RATIO = 4, 128
"""Least rows and columns of a matrix, and the largest ratio of both, as timm has them."""
LARGEST_SIDE = 2048
"""Of the smaller side of a matrix, because the work grows with the square of this side."""
SMALLEST_SCALE = 1e-4
"""Below this scale the stored momentum is multiplied by its scale, which then is 1: once in 180 steps."""


class RegionalMuon(NAdamW):  # type: ignore[misc]
    """Muon (Jordan et al., 2024) for matrices, timm's NAdamW for all other parameters.

    The matrix of a convolution's weight has one row for each output channel. A step may be restricted to regions of the
    weights: momentum outside of a region decays, as it does where gradients are zero, but only the region's momentum is
    made orthogonal, and only the region's entries move and decay. Steps are scaled to the size of AdamW's (Liu et al.,
    2025).

    Args:
        groups: of parameters, from ``by_method``.
        lr: learning rate of groups that name none.
    """

    _parts: Mapping[torch.Tensor, PartialGradient] = MappingProxyType({})

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, lr=lr, betas=BETAS, eps=EPSILON)

    @contextmanager
    def restricted(self, gradients: PartialGradients) -> Iterator[None]:
        """Within this context groups hold the regions of matrices that have gradients, and steps move them alone.

        Parameters that are no matrices get gradients as a whole.
        """
        partial, every = {gradient.weight: gradient for gradient in gradients}, self.param_groups
        matrices = {w: partial[w] for group in every if group["orthogonal"] for w in group["params"] if w in partial}
        for weight in partial.keys() - matrices.keys():
            weight.grad = partial[weight].whole()
        leaves = {weight: gradient.leaf() for weight, gradient in matrices.items()}
        self._parts = {leaves[weight]: gradient for weight, gradient in matrices.items()}
        self.param_groups = [{**g, "params": [leaves.get(p, p) for p in g["params"]]} for g in every]
        try:
            yield
        finally:
            self.param_groups = every
            del self._parts

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step; returns what the closure returns, which computes the gradients."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        every = self.param_groups
        for group in every:
            for matrix in group["params"] if group["orthogonal"] else ():
                if matrix.grad is not None:
                    self._move(matrix, matrix.grad, group)
        try:
            self.param_groups = [group for group in every if not group["orthogonal"]]
            super().step()  # type: ignore[no-untyped-call]
        finally:
            self.param_groups = every
        return loss

    def _move(self, matrix: torch.Tensor, gradient: torch.Tensor, group: Mapping[str, Any]) -> None:
        """A step on one matrix, or on the region that stands for it."""
        part = self._parts.get(matrix)
        ahead = self._ahead(matrix, gradient, part)
        if not matrix.numel():
            return
        direction = orthogonal(ahead.reshape(matrix.shape if part is None else part.value.shape).flatten(1))
        matrix.mul_(1 - group["lr"] * group["weight_decay"])
        matrix.add_(direction.reshape(matrix.shape), alpha=-group["lr"] * get_lr_scale(direction.shape))

    def _ahead(self, matrix: torch.Tensor, gradient: torch.Tensor, part: PartialGradient | None) -> torch.Tensor:
        """The gradient with Nesterov's momentum, which takes the gradient in.

        The decay of a weight's whole momentum is a number beside it, so that a step reads and writes its region alone.
        """
        weight = matrix if part is None else part.weight
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state.setdefault("scale", 1.0)
        region = None if part is None or part.is_whole else part.region
        if state["scale"] < SMALLEST_SCALE or (region is None and state["scale"] < 1):
            state["momentum"].mul_(state["scale"])
            state["scale"] = 1.0
        if region is None:
            return gradient.lerp(state["momentum"].lerp_(gradient, 1 - MOMENTUM), MOMENTUM)
        state["scale"] *= MOMENTUM
        momentum = view(state["momentum"], region).add_(gradient, alpha=(1 - MOMENTUM) / state["scale"])
        return gradient.mul(1 - MOMENTUM).add_(momentum, alpha=MOMENTUM * state["scale"])


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Nearly the orthogonal matrix that is next to a matrix, by Newton-Schulz steps.

    Steps are computed in bfloat16 where the device has instructions for it, else in float32: a processor without such
    instructions takes 20 times as long in bfloat16.
    """
    dtype = torch.bfloat16 if resolve("auto", matrix.device.type) == "bf16" else torch.float32
    result: torch.Tensor = zeropower_via_newtonschulz(matrix, len(COEFFICIENTS), COEFFICIENTS, dtype=dtype)
    return result


def by_method(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The groups, each divided into matrices that are made orthogonal and parameters that NAdamW updates."""
    for group in groups:
        for is_orthogonal in (True, False):
            parameters = [p for p in group["params"] if is_matrix(p) == is_orthogonal]
            if parameters:
                yield {**group, "params": parameters, "orthogonal": is_orthogonal}


def is_matrix(parameter: torch.Tensor) -> bool:
    """Whether a parameter is a matrix that is neither thin nor huge; a convolution's needs two input channels."""
    if parameter.ndim < 2 or 1 in parameter.shape[:2]:
        return False
    short, long = sorted((len(parameter), parameter[0].numel()))
    return SHORTEST_SIDE <= short <= LARGEST_SIDE and long <= LARGEST_RATIO * short
