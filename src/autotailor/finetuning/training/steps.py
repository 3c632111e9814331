"""What one step of training is given, and what it may tell about itself."""

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.partial_gradients import PartialGradients


@dataclass(frozen=True)
class Step:
    """One step of training, or one of its micro-batches: the input of the function that computes gradients.

    Attributes:
        images: ``[b, 3, R, R]``, channels last, on the device that trains.
        labels: ``[b]``, on the same device; of mixed images the share of each class, ``[b, classes]``.
        progress: share of the training that is done, 0 to 1.
        random: generator of this step; every micro-batch of a step gets it in the same state.
        loss_scale: by which the loss is multiplied before its gradients are computed: the part of the batch that is in
            this micro-batch, times the factor of training in float16.
    """

    images: torch.Tensor
    labels: torch.Tensor
    progress: float
    random: np.random.Generator
    loss_scale: float = 1.0


# A function that adds the gradients of ``loss_scale`` times the loss to those of the module, and returns the loss.
StepFunction = Callable[[Step], float]


@runtime_checkable
class Describing(Protocol):
    """A step function that can say what its last step trained."""

    def describe(self) -> str:
        """What the last step trained, with the loss of each part, as one clause."""
        ...


@runtime_checkable
class OfKinds(Protocol):
    """A step function whose steps train different networks, so that their losses cannot all be compared."""

    def kind(self) -> Hashable:
        """What the last step trained, the same in all processes; losses of steps of one kind can be compared."""
        ...


@runtime_checkable
class Clipping(Protocol):
    """A step function that scales gradients down itself."""

    def clip(self) -> None:
        """Scales the gradients down that all micro-batches of a step have added up."""
        ...


@runtime_checkable
class Restrictable(Protocol):
    """An optimizer that takes partial gradients of weights."""

    def restricted(self, gradients: PartialGradients) -> AbstractContextManager[None]:
        """Within this context the groups of the optimizer hold parameters, or regions of these, with gradients."""
        ...


def description(step: StepFunction) -> str:
    """What the last step trained; empty where the step function does not say."""
    return step.describe() if isinstance(step, Describing) else ""


def kind(step: StepFunction) -> Hashable:
    """The kind of the last step; None where all steps train the same."""
    return step.kind() if isinstance(step, OfKinds) else None


def with_gradients(optimizer: torch.optim.Optimizer, module: nn.Module) -> AbstractContextManager[None]:
    """Within this context the parameters of the optimizer have the gradients that a step has added up in a module.

    The partial gradients of a SuperNet become gradients of whole weights, unless the optimizer can do with less.
    """
    if isinstance(module, ElasticModule):
        if isinstance(optimizer, Restrictable):
            return optimizer.restricted(module.partial_gradients)
        module.partial_gradients.hand_over()
    return nullcontext()
