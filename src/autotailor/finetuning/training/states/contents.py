"""The whole state of a training: what a checkpoint holds, so that the training goes on in the same bits.

It may hold an exponential moving average of the weights. After step n (from 1) the average a becomes d a + (1 - d) w,
with d = min(decay, (1 + n) / (10 + n)). The smaller d of the first steps lets the average forget the weights that the
training began with, as in TensorFlow's ExponentialMovingAverage. Statistics of BatchNorm are averaged like weights;
integers are taken over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from autotailor.finetuning.training.micro_batches import MicroBatches
from autotailor.finetuning.training.precision import LossScaler

Row = dict[str, float]
"""What is known of one epoch: its number, its loss, its learning rate, and the accuracies that were measured."""
COUNTERS = ("step",)
"""What an optimizer counts in its groups of parameters and not in the state of each parameter (LAMB of timm)."""

Values = dict[str, torch.Tensor]


@dataclass
class Position:
    """The position of a training: the next step, the losses so far, and the score of the best state so far."""

    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    history: list[Row] = field(default_factory=list)
    best: float = -math.inf


class State:
    """Everything of a training that its steps change.

    Args:
        module: whose parameters are trained.
        optimizer: of these parameters.
        average: of the weights; None where none is kept.
        scaler: of the loss.
        micro_batches: whose size is part of the state.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        average: Average | None,
        scaler: LossScaler,
        micro_batches: MicroBatches,
    ) -> None:
        self.position = Position()
        self._module, self._optimizer, self._average = module, optimizer, average
        self._scaler, self._micro_batches = scaler, micro_batches

    def contents(self) -> dict[str, Any]:
        """The state as values that ``torch.load(weights_only=True)`` reads."""
        return {
            "module": self._module.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "average": self._average.values if self._average else None,
            "position": vars(self.position),
            "loss_scaler": self._scaler.state_dict(),
            "micro_batch": self._micro_batches.size,
        }

    def load(self, contents: Mapping[str, Any]) -> None:
        """Goes on from a result of ``contents``, which may come from an earlier autotailor.

        Raises:
            KeyError, RuntimeError, TypeError, ValueError: the state is that of another network or another optimizer.
            Afterwards the training cannot go on.
        """
        try:
            self._module.load_state_dict(contents["module"])
        except RuntimeError as error:
            raise ValueError("it holds the weights of another network") from error
        load_optimizer(self._optimizer, contents["optimizer"])
        self.position = Position(**contents["position"])
        self._scaler.load_state_dict(contents.get("loss_scaler", {}))
        self._micro_batches.size = contents.get("micro_batch", self._micro_batches.size)
        if self._average:
            self._average.load(contents.get("average") or self._module.state_dict())


def load_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Gives a new optimizer the moments of another one of its kind; it keeps its own parameters such as weight decay.

    PyTorch by itself would take the parameters over from the state, and would take the state of an optimizer of any
    kind.

    Raises:
        ValueError: the state is that of another kind of optimizer, or of other groups of parameters.
    """
    present, saved = optimizer.state_dict()["param_groups"], state["param_groups"]
    for own, before in zip(present, saved, strict=False):
        more, less = before.keys() - own.keys() - set(COUNTERS), own.keys() - before.keys()
        if more and less:  # a later version of PyTorch has more parameters of the same kind, and none less
            raise ValueError(f"it was trained with another optimizer than {type(optimizer).__name__}")
    if [group["params"] for group in present] != [group["params"] for group in saved]:
        raise ValueError("other parameters were trained, or with other factors of lr (layer_decay)")
    groups = [before | own for before, own in zip(saved, present, strict=True)]
    optimizer.load_state_dict({**state, "param_groups": groups})


class Average:
    """The average of a module's state, which begins as the module's present state.

    Args:
        module: in training; its parameters stay where they lie in memory.
        decay: share of the average that each step leaves, below 1.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self._module, self._decay = module, decay
        self.values: Values = _copied(module)

    def load(self, values: Mapping[str, torch.Tensor]) -> None:
        """Continues from an average of the same module."""
        for name, value in values.items():
            self.values[name].copy_(value)

    @torch.no_grad()
    def update(self, steps: int) -> None:
        """Takes the module's present state in.

        Args:
            steps: of the training so far, at least 1.
        """
        update = get_ema_multi_avg_fn(min(self._decay, (1 + steps) / (10 + steps)))  # type: ignore[no-untyped-call]
        present = self._module.state_dict()
        floating = [name for name, value in present.items() if value.is_floating_point()]
        update([self.values[name] for name in floating], [present[name] for name in floating], steps)
        for name in present.keys() - set(floating):
            self.values[name].copy_(present[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within this context the module has the average for its state."""
        present = _copied(self._module)
        self._module.load_state_dict(self.values)
        try:
            yield
        finally:
            self._module.load_state_dict(present)

    def apply(self) -> None:
        """Gives the module the average for its state."""
        self._module.load_state_dict(self.values)


def _copied(module: nn.Module) -> Values:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
