"""Optimizers by the name that the configuration gives them; adding one is one function with ``register``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from autotailor.finetuning.errors import TrainingError

if TYPE_CHECKING:
    import torch
    from torch import nn

Groups = list[dict[str, Any]]
Make = Callable[[Groups, float], "torch.optim.Optimizer"]
_OPTIMIZERS: dict[str, Make] = {}


def register(name: str) -> Callable[[Make], Make]:
    """Decorator: makes a function known that makes an optimizer from groups of parameters and a learning rate."""

    def add(make: Make) -> Make:
        if name in _OPTIMIZERS:
            raise TrainingError(f"optimizer {name!r} is registered twice; choose another name")
        _OPTIMIZERS[name] = make
        return make

    return add


def names() -> tuple[str, ...]:
    """Names of all optimizers, sorted."""
    return tuple(sorted(_OPTIMIZERS))


@register("adamw")
def adamw(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """AdamW (Loshchilov and Hutter, 2019)."""
    import torch

    return torch.optim.AdamW(groups, lr=lr)


@register("sgd")
def sgd(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """SGD with Nesterov's momentum of 0.9."""
    import torch

    return torch.optim.SGD(groups, lr=lr, momentum=0.9, nesterov=True)


def make_optimizer(module: nn.Module, name: str, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    """Optimizer over a module's parameters; weight decay applies only to those with more than one axis.

    Raises:
        TrainingError: the module has no trainable parameters.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise TrainingError(f"{type(module).__name__} has no trainable parameters; set requires_grad of its weights")
    groups: Groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return _OPTIMIZERS[name]([group for group in groups if group["params"]], lr)
