"""Muon for weights of which a step trains a part: the work of a step follows the size of that part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from timm.optim.muon import Muon

from autotailor.ir.execution.weight_plan import Region, inside, outside

MOMENTUM = "momentum_buffer"
"""Name of the momentum in timm's state of a matrix that is orthogonalised."""


class RegionalMuon(Muon):  # type: ignore[misc]
    """timm's Muon, whose steps may be restricted to regions of the weights.

    Momentum is that of Muon: outside of a region, where gradients are zero, it decays. Only the region's momentum is
    made orthogonal, and only the region's entries move and decay. A weight's first step is one on the whole weight.
    """

    def __init__(self, groups: list[dict[str, Any]], **options: Any) -> None:
        super().__init__(groups, **options)
        self._regions: Mapping[torch.Tensor, Region] = {}

    @contextmanager
    def restricted(self, regions: Mapping[torch.Tensor, Region]) -> Iterator[None]:
        """Within this context steps are restricted to regions, outside of which gradients are zero.

        Args:
            regions: parameter to its region; parameters without one are stepped on as a whole.
        """
        self._regions = regions
        try:
            yield
        finally:
            self._regions = {}

    def step(self, closure: Any = None) -> Any:
        """One step; returns what the closure returns, which computes the gradients."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        narrowed = [narrow for group in self.param_groups for narrow in self._narrow(group)]
        try:
            super().step()  # type: ignore[no-untyped-call]
        finally:
            for one in narrowed:
                one.widen()
        return loss

    def _narrow(self, group: Mapping[str, Any]) -> Iterator[_Narrowed]:
        """The parameters of a group, narrowed to their regions, and the momentum outside of the regions decayed."""
        for parameter in group["params"]:
            region, momentum = self._regions.get(parameter), self.state.get(parameter, {}).get(MOMENTUM)
            if region is None or momentum is None or parameter.grad is None:
                continue
            for part in outside(momentum, region):
                part.mul_(group["momentum"])
            yield _Narrowed.of(parameter, self.state[parameter], region)


@dataclass(frozen=True, eq=False)
class _Narrowed:
    """A parameter that stands for a region of itself until it is widened; the three tensors are the whole ones."""

    parameter: torch.Tensor
    state: dict[str, Any]
    weight: torch.Tensor
    gradient: torch.Tensor
    momentum: torch.Tensor

    @classmethod
    def of(cls, parameter: torch.Tensor, state: dict[str, Any], region: Region) -> _Narrowed:
        assert parameter.grad is not None
        whole = cls(parameter, state, parameter.data, parameter.grad, state[MOMENTUM])
        whole._become(*(inside(tensor, region) for tensor in (whole.weight, whole.gradient, whole.momentum)))
        return whole

    def widen(self) -> None:
        self._become(self.weight, self.gradient, self.momentum)

    def _become(self, weight: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor) -> None:
        self.parameter.grad = None  # PyTorch refuses another shape of a parameter that has a gradient
        self.parameter.data, self.parameter.grad, self.state[MOMENTUM] = weight, gradient, momentum
