"""Mixed precision of training: convolutions in bfloat16 where the processor computes in it, the rest in float32.

Weights, their gradients' sums, normalisation statistics and the loss stay in float32, and so does every evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn

PRECISIONS = ("auto", "fp32", "bf16")


def resolve(precision: str) -> str:
    """``auto`` is ``bf16`` where the processor has instructions for it (AVX512-BF16), else ``fp32``."""
    if precision != "auto":
        return precision
    import torch

    return "bf16" if torch.cpu._is_avx512_bf16_supported() else "fp32"


def forward(network: nn.Module, images: torch.Tensor, precision: str) -> torch.Tensor:
    """Logits float32 ``[n, classes]`` of a network that is trained in a precision of ``PRECISIONS``.

    Casts are not cached: SubNets run side by side on the same weights.
    """
    import torch

    with torch.autocast("cpu", torch.bfloat16, enabled=resolve(precision) == "bf16", cache_enabled=False):
        logits: torch.Tensor = network(images)
    return logits.float()
