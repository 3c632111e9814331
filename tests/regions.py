"""What lies outside of a region of a weight, which steps on the region leave as it is."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from autotailor.ir.execution.weight_plan import Region


def outside(weight: torch.Tensor, region: Region) -> Iterator[torch.Tensor]:
    """Views of all that lies outside of a region; no entry is in two of them."""
    for axis, (start, end) in enumerate(region):
        if start:
            yield weight.narrow(axis, 0, start)
        if end < weight.shape[axis]:
            yield weight.narrow(axis, end, weight.shape[axis] - end)
        weight = weight.narrow(axis, start, end - start)
