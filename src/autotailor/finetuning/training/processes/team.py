"""What the processes of one training decide together in each step, so that all of them take the same steps.

Process i of k has the part i of every batch, draws the same SubNets as all others, and multiplies its loss by 1 / k.
The sum of all gradients is then the gradient of the mean loss over the whole batch, as one process computes it; with
the statistics of ``batch_norm`` this also holds for networks with BatchNorm. The gradients of a step are added up by
one ``all_reduce`` of one flat tensor. ``DistributedDataParallel`` cannot do this here: it waits for gradients that
``backward`` adds to parameters, and a SubNet's gradients are those of slices, which are added afterwards.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.processes.batch_norm import Synchronised, widest
from autotailor.finetuning.training.processes.group import Group, Messages
from autotailor.ir.execution.modules.elastic import ElasticModule

ATTEMPT = 3  # numbers in the last message of an attempt


@dataclass(frozen=True)
class Agreed:
    """What all processes know after an attempt at a step.

    Attributes:
        loss: mean over the batch; None where the memory of a process was too small.
        signal: that has arrived in one of the processes; 0 for none.
    """

    loss: float | None
    signal: int = 0


class Team:
    """The processes of one training.

    Args:
        group: the processes.
        module: in training.
        device: that trains.
        is_synchronised: whether BatchNorm computes with the statistics of the whole batch.
    """

    def __init__(self, group: Group, module: nn.Module, device: torch.device, is_synchronised: bool = True) -> None:
        self.group, self._module, self._device = group, module, device
        channels = widest(module) if is_synchronised and group.size > 1 else 0
        self._messages = Messages(group, max(ATTEMPT, 2 * channels), device)
        self._statistics = Synchronised(self._messages) if channels else None

    def statistics(self) -> AbstractContextManager[object]:
        """The context of an attempt at a step, in which BatchNorm computes with the statistics of the whole batch."""
        return self._statistics or nullcontext()

    def agree(self, loss: float | None, signal: int = 0) -> Agreed:
        """Ends an attempt at a step.

        Args:
            loss: mean over this process's part of the batch; None where the memory was too small.
            signal: that has arrived in this process; 0 for none.

        Raises:
            TrainingError: the processes have gradients of different parameters.
        """
        if self.group.size == 1:
            return Agreed(loss, signal)
        if loss is None:
            self._messages.fail()
            return Agreed(None)
        elements = sum(gradient.numel() for gradient in self._gradients())
        values = torch.tensor([loss, signal, elements], dtype=torch.float64, device=self._device)
        ends = self._messages.end(values)
        if ends is None:
            return Agreed(None)
        losses, signals, counts = ends.T.tolist()
        if len(set(counts)) > 1:
            raise TrainingError(
                f"the processes have gradients of different parameters: {counts} numbers. The step must not depend on "
                f"the values of the images that it is given"
            )
        return Agreed(sum(losses) / len(losses), int(max(signals)))

    def add_gradients(self) -> None:
        """Replaces the gradients of each process by their sum over all processes."""
        if self.group.size == 1:
            return
        gradients = self._gradients()
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.group.add_up(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view(gradient.shape))

    def signal(self, own: int) -> int:
        """A signal that has arrived in one of the processes, asked between steps; 0 for none."""
        return int(self.group.gather(torch.tensor([own])).max())

    def check_same(self, what: str, values: Sequence[int], remedy: str) -> None:
        """Raises TrainingError unless all processes give the same numbers."""
        gathered = self.group.gather(torch.tensor(list(values))).tolist()
        for number, each in enumerate(gathered):
            if each != gathered[0]:
                raise TrainingError(f"process {number} has {what} {each}, and process 0 has {gathered[0]}; {remedy}")

    def _gradients(self) -> list[torch.Tensor]:
        whole = [p.grad for p in self._module.parameters() if p.grad is not None]
        parts = self._module.partial_gradients if isinstance(self._module, ElasticModule) else ()
        return whole + [gradient.value for gradient in parts]
