"""Muon for weights of which a step trains a part: the work of a step follows the size of that part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
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

    _regions: Mapping[torch.Tensor, Region] = MappingProxyType({})

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
            del self._regions

    def step(self, closure: Any = None) -> Any:
        """One step; returns what the closure returns, which computes the gradients."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        with ExitStack() as narrowed:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if region := self._region(parameter):
                        self._decay_outside(parameter, region, group["momentum"])
                        narrowed.enter_context(_narrowed(parameter, self.state[parameter], region))
            super().step()  # type: ignore[no-untyped-call]
        return loss

    def _region(self, parameter: torch.Tensor) -> Region | None:
        """The region that a step is restricted to; None where the step is one on the whole parameter, or none."""
        region = self._regions.get(parameter)
        if region is None or parameter.grad is None or MOMENTUM not in self.state.get(parameter, {}):
            return None
        is_whole = all(ends == (0, size) for ends, size in zip(region, parameter.shape, strict=True))
        is_empty = any(start == end for start, end in region)
        return None if is_whole or is_empty else region

    @torch.no_grad()
    def _decay_outside(self, parameter: torch.Tensor, region: Region, factor: float) -> None:
        for part in outside(self.state[parameter][MOMENTUM], region):
            part.mul_(factor)


@contextmanager
def _narrowed(parameter: torch.Tensor, state: dict[str, Any], region: Region) -> Iterator[None]:
    """Within this context a parameter, its gradient and its momentum are a region of themselves."""
    assert parameter.grad is not None
    whole = parameter.data, parameter.grad, state[MOMENTUM]
    _give(parameter, state, *(inside(tensor, region) for tensor in whole))
    try:
        yield
    finally:
        _give(parameter, state, *whole)


def _give(
    parameter: torch.Tensor, state: dict[str, Any], weight: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor
) -> None:
    parameter.grad = None  # PyTorch refuses another shape of a parameter that has a gradient
    parameter.data, parameter.grad, state[MOMENTUM] = weight, gradient, momentum
