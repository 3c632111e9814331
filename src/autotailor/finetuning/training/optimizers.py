"""Optimizers by the name that the configuration gives them; adding one is one function with ``register``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


@register("adamw_fused")
def adamw_fused(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """AdamW in one pass over the memory of each weight; it differs from ``adamw`` by the rounding of its sums."""
    import torch

    return torch.optim.AdamW(groups, lr=lr, fused=True)


@register("sgd")
def sgd(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """SGD with Nesterov's momentum of 0.9."""
    import torch

    return torch.optim.SGD(groups, lr=lr, momentum=0.9, nesterov=True)


@register("rmsprop")
def rmsprop(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """RMSprop with momentum 0.9 and the constants of torchvision's recipe for MobileNetV3."""
    import torch

    return torch.optim.RMSprop(groups, lr=lr, alpha=0.9, momentum=0.9, eps=0.0316)


@register("lamb")
def lamb(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """LAMB of timm (You et al., 2020), for large batches; ``gradient_norm`` is what scales gradients down."""
    from timm.optim.lamb import Lamb

    optimizer: torch.optim.Optimizer = Lamb(groups, lr=lr, max_grad_norm=None)
    return optimizer


@register("muon")
def muon(groups: Groups, lr: float) -> torch.optim.Optimizer:
    """Muon (Jordan et al., 2024): the momentum of each matrix is made orthogonal, NAdamW updates other parameters.

    Its steps are as large as AdamW's (Liu et al., 2025), so that the rates of both are alike. NAdamW also updates
    matrices whose smaller side is above 2048, because a step on those of AlexNet would take longer than all else.
    """
    from autotailor.finetuning.training.regional_muon import RegionalMuon, by_method

    optimizer: torch.optim.Optimizer = RegionalMuon(list(by_method(groups)), lr)
    return optimizer


def make_optimizer(
    module: nn.Module, name: str, lr: float, weight_decay: float, scales: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Optimizer over a module's parameters; weight decay applies only to those with more than one axis.

    Args:
        module: whose parameters are trained.
        name: one of ``names()``.
        lr: learning rate.
        weight_decay: of the parameters with more than one axis.
        scales: factor of the learning rate by name of the parameter, 1 for others. Each group of the optimizer has its
            factor as ``lr_scale``.

    Raises:
        TrainingError: the module has no trainable parameters, or what is registered under the name makes no optimizer.
    """
    import torch

    parameters = [(own, p) for own, p in module.named_parameters() if p.requires_grad]
    if not parameters:
        raise TrainingError(f"{type(module).__name__} has no trainable parameters; set requires_grad of its weights")
    groups: dict[tuple[float, bool], dict[str, Any]] = {}
    for parameter_name, parameter in parameters:
        scale, is_vector = (scales or {}).get(parameter_name, 1.0), parameter.ndim <= 1
        group = {"params": [], "weight_decay": 0.0 if is_vector else weight_decay, "lr_scale": scale}
        groups.setdefault((-scale, is_vector), group)["params"].append(parameter)
    optimizer = _OPTIMIZERS[name]([groups[key] for key in sorted(groups)], lr)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TrainingError(
            f"optimizer {name!r}: its function returned {type(optimizer).__name__}, expected a torch.optim.Optimizer; "
            f"return one that is made from the groups and the learning rate"
        )
    return optimizer
