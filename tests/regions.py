"""What lies outside of a region of a weight, which steps on the region leave as it is."""

import torch

from autotailor.ir.execution.weight_plan import Region, view


def outside(weight: torch.Tensor, region: Region) -> torch.Tensor:
    """All entries that lie outside of a region, in one axis."""
    is_outside = torch.ones(weight.shape, dtype=torch.bool)
    view(is_outside, region).fill_(False)
    return weight[is_outside]
