"""Gradients of one step in several forward passes, as many as memory needs (gradient accumulation).

The loss of a batch is the mean over its n images. With n_i images in the micro-batch i and L_i the mean over these,

    L = sum over i of (n_i / n) L_i,

and the same holds for the gradients. A network with BatchNorm computes another function of each L_i: the statistics of
training are those of a micro-batch, and not those of the batch.

Where several processes train together, n is the number of images of one process. Where the memory of one of them is too
small, all of them halve their micro-batches.
"""

import copy
import logging
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from autotailor.compute.placement import CPU, free_memory, is_out_of_memory
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.processes.group import Group
from autotailor.finetuning.training.processes.team import Agreed, Team
from autotailor.finetuning.training.steps import Step, StepFunction

logger = logging.getLogger(__name__)
SINGLE = "Expected more than 1 value per channel when training"
"""What PyTorch's BatchNorm says of a single image where each of its channels is one value."""


def no_signal() -> int:
    """Where no signal is listened to."""
    return 0


class MicroBatches:
    """Computes the gradients of steps; where memory is too small, it halves the micro-batch and repeats the step.

    Args:
        module: that gets the gradients, those of its parameters or its partial gradients.
        step: computes the gradients of one micro-batch.
        size: most images in one forward pass; 0 passes the whole batch.
        title: of messages.
        team: the processes that train together; None for this process alone.

    Attributes:
        size: as it is now.
    """

    def __init__(self, module: nn.Module, step: StepFunction, size: int, title: str, team: Team | None = None) -> None:
        self._module, self._step, self._title = module, step, title
        self._team = team or Team(Group(), module, CPU)
        self.size = size

    def gradients(self, step: Step, seed: int, signal: Callable[[], int] = no_signal) -> Agreed:
        """Sets the gradients of one step, those of all processes.

        Args:
            step: with this process's part of the batch.
            seed: of PyTorch's random numbers in the step.
            signal: gives the signal that has arrived in this process so far; 0 for none.

        Returns:
            The mean loss over the whole batch, and the signal of all processes.

        Raises:
            TrainingError: memory is too small for one image.
        """
        buffers = [buffer.clone() for buffer in self._module.buffers()]
        while True:
            agreed = self._team.agree(self._tried(step, seed), signal())
            if agreed.loss is not None:
                self._team.add_gradients()
                return agreed
            self._module.zero_grad(set_to_none=True)
            with torch.no_grad():
                for buffer, before in zip(self._module.buffers(), buffers, strict=True):
                    buffer.copy_(before)  # BatchNorm's running averages had seen a part of the images
            free_memory(step.images.device)
            self._halve(len(step.images))

    def _tried(self, step: Step, seed: int) -> float | None:
        """The loss; None where memory was too small. Nothing refers to the failed attempt's tensors any more."""
        try:
            with self._team.statistics():
                return self._attempt(step, seed)
        except Exception as error:
            if SINGLE in str(error):
                raise TrainingError(self._refusal_of_single_images()) from error
            if not is_out_of_memory(error):
                raise
        return None

    def _refusal_of_single_images(self) -> str:
        return (
            f"{self._title}: a BatchNorm of the network normalises one value for each channel and image, and cannot do "
            f"so for a single image; set micro_batch (it is {self.size}) to 0 or to a number that leaves no single "
            f"image of a batch, and batch_size to 2 images or more for each process"
        )

    def _attempt(self, step: Step, seed: int) -> float:
        torch.manual_seed(seed)
        self._module.zero_grad(set_to_none=True)
        count, loss = len(step.images), 0.0
        passes = self._passes(count)
        for images, labels in zip(step.images.tensor_split(passes), step.labels.tensor_split(passes), strict=True):
            share = len(images) / count
            part = replace(
                step,
                images=images,
                labels=labels,
                random=copy.deepcopy(step.random),
                loss_scale=share * step.loss_scale,
            )
            loss += share * self._step(part)
        return loss

    def _passes(self, count: int) -> int:
        """Number of forward passes of a batch; their sizes differ by at most one image."""
        return -(-count // self.size) if self.size else 1

    def _halve(self, count: int) -> None:
        largest = -(-count // self._passes(count))
        if largest == 1:
            raise TrainingError(
                f"{self._title}: the accelerator's memory is too small for one image; choose a smaller resolution or "
                f"network, or set accelerator to cpu"
            )
        self.size = largest // 2
        logger.warning(
            "%s: the accelerator's memory is too small for %d images in one forward pass, so this step is repeated and "
            "training goes on with at most %d; set micro_batch to that to begin with it",
            self._title,
            largest,
            self.size,
        )
