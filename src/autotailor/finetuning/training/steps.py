"""What one step of training is given, and what it may tell about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch


@dataclass(frozen=True)
class Step:
    """One step of training, the input of the function that computes gradients.

    Attributes:
        images: ``[b, 3, R, R]``, channels last.
        labels: ``[b]``.
        progress: share of the training that is done, 0 to 1.
        random: generator of this step.
    """

    images: torch.Tensor
    labels: torch.Tensor
    progress: float
    random: np.random.Generator


# A function that adds gradients to the parameters and returns the loss.
StepFunction = Callable[[Step], float]


@runtime_checkable
class Describing(Protocol):
    """A step function that can say what its last step trained."""

    def describe(self) -> str:
        """What the last step trained, with the loss of each part, as one clause."""
        ...


def description(step: StepFunction) -> str:
    """What the last step trained; empty where the step function does not say."""
    return step.describe() if isinstance(step, Describing) else ""
