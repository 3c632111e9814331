"""Mixed precision of training: convolutions in bfloat16 where the processor supports it, the rest in float32.

Weights, sums of gradients, normalisation statistics and the loss stay in float32. Evaluation uses float32 throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn

PRECISIONS = ("auto", "fp32", "bf16")


def resolve(precision: str) -> str:
    """Resolves ``auto``: ``bf16`` where the processor has instructions for it (AVX512-BF16), else ``fp32``."""
    if precision != "auto":
        return precision
    import torch

    return "bf16" if torch.cpu._is_avx512_bf16_supported() else "fp32"


def forward(network: nn.Module, images: torch.Tensor, precision: str) -> torch.Tensor:
    """Logits float32 ``[n, classes]`` of a network, computed in one of ``PRECISIONS``.

    Casts of weights are not cached, because SubNets run side by side on the same weights.
    """
    import torch

    with torch.autocast("cpu", torch.bfloat16, enabled=resolve(precision) == "bf16", cache_enabled=False):
        logits: torch.Tensor = network(images)
    return logits.float()
