"""Mixed precision of training: convolutions in bfloat16 or float16 where the device supports it, the rest in float32.

Weights, sums of gradients, normalisation statistics and the loss stay in float32. Evaluation uses float32 throughout.

The smallest float16 above 0 is 6e-8, and gradients are often smaller. Training in float16 therefore multiplies each
loss by a large factor before its gradients are computed, and divides the sums of gradients by the same factor
(``torch.amp.GradScaler``). Bfloat16 has the range of float32 and needs no factor.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

PRECISIONS = ("auto", "fp32", "bf16", "fp16")


def resolve(precision: str, kind: str = "cpu") -> str:
    """Resolves ``auto`` for a kind of device.

    * Processor: ``bf16`` where it has instructions for bfloat16 (AVX512-BF16), else ``fp32``.
    * CUDA: ``bf16`` where the GPU computes in bfloat16 (from Ampere on), else ``fp16``.
    * MPS: ``fp32``.
    """
    if precision != "auto":
        return precision
    import torch

    if kind == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if kind == "cpu" and torch.cpu._is_avx512_bf16_supported() else "fp32"


def forward(network: nn.Module, images: torch.Tensor, precision: str) -> Any:
    """What a network returns, in float32, computed in one of ``PRECISIONS`` where the images are.

    It is a tensor, of a classifier logits ``[n, classes]``, or a tuple of what are tensors or tuples.

    Casts of weights are not cached, because SubNets run side by side on the same weights.
    """
    kind = images.device.type
    with _mixed(kind, resolve(precision, kind)):
        outputs = network(images)
    return _float(outputs)


def _float(outputs: Any) -> Any:
    return tuple(map(_float, outputs)) if isinstance(outputs, tuple) else outputs.float()


def _mixed(kind: str, precision: str) -> AbstractContextManager[object]:
    import torch

    if precision == "fp32":
        return nullcontext()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    return torch.autocast(kind, dtype, cache_enabled=False)


class LossScaler:
    """The factor of the loss in float16, and the step of the optimizer that divides gradients by the factor.

    A step whose gradients are not finite is left out, and halves the factor; 2,000 finite steps in a row double it. In
    other precisions the factor is 1, and nothing is divided.
    """

    def __init__(self, precision: str, device: torch.device) -> None:
        import torch

        enabled = resolve(precision, device.type) == "fp16"
        self._scaler = torch.amp.GradScaler(device.type, enabled=enabled)
        if enabled:
            self._scaler.scale(torch.ones((), device=device))  # the scaler makes its tensors at its first use

    @property
    def factor(self) -> float:
        """By which the loss is multiplied before its gradients are computed."""
        return float(self._scaler.get_scale())

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides the gradients by the factor, once for each step; a norm of gradients is asked for afterwards."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """A step of the optimizer, unless the gradients are not finite; adapts the factor."""
        self._scaler.step(optimizer)
        self._scaler.update()

    def state_dict(self) -> dict[str, float]:
        """The factor and the steps since its last change; empty where the precision needs no factor."""
        return dict(self._scaler.state_dict())

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Goes on with a factor; the state of another precision changes nothing."""
        if state and self._scaler.is_enabled():
            self._scaler.load_state_dict(state)
