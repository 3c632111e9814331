"""Messages of one size that all processes send in the same order, so that no process waits for one that has failed.

Within an attempt at a step each BatchNorm sends one message forwards and one backwards; the last message of an attempt
says how the attempt ended. A process whose memory was too small cannot send what the others wait for. It sends messages
that say FAILED instead, until every other process has come to its last message. Then all know that the attempt is to be
repeated with fewer images. Nobody looks into a message before the last one, so that an accelerator never waits for the
processor within an attempt.
"""

from __future__ import annotations

import torch

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.processes.group import Group

RUNNING, ENDED, FAILED = 0.0, 1.0, 2.0


class Messages:
    """The messages of one process.

    Args:
        group: the processes.
        width: numbers in the longest message.
        device: on which messages are exchanged.
    """

    def __init__(self, group: Group, width: int, device: torch.device) -> None:
        self._group, self._width, self._device = group, width, device

    @property
    def size(self) -> int:
        """Number of processes."""
        return self._group.size

    def send(self, values: torch.Tensor) -> torch.Tensor:
        """What all processes send, ``[size, n]``; they mean nothing where a process has failed.

        Args:
            values: ``[n]``, float64.

        Raises:
            TrainingError: the values are more than a message holds.
        """
        if len(values) > self._width:
            raise TrainingError(
                f"BatchNorm over {len(values) // 2} channels is computed by a layer that was not found in the network; "
                f"set sync_batch_norm to false, so that each process normalises its own images"
            )
        return self._exchange(RUNNING, values)[:, 1 : 1 + len(values)]

    def end(self, values: torch.Tensor) -> torch.Tensor | None:
        """Ends an attempt that went well: what all processes send, ``[size, n]``, or None where a process has failed.

        Raises:
            TrainingError: another process computes something else.
        """
        found = self._exchange(ENDED, values)
        states = found[:, 0].tolist()
        if RUNNING in states:
            raise TrainingError(
                f"process {states.index(RUNNING)} runs more layers of BatchNorm in a step than process "
                f"{self._group.rank}; the network must not depend on the values of its images, or set sync_batch_norm "
                f"to false"
            )
        return None if FAILED in states else found[:, 1 : 1 + len(values)]

    def fail(self) -> None:
        """Ends an attempt for which the memory of this process was too small."""
        nothing = torch.empty(0, dtype=torch.float64, device=self._device)
        while RUNNING in self._exchange(FAILED, nothing)[:, 0].tolist():
            pass

    def _exchange(self, state: float, values: torch.Tensor) -> torch.Tensor:
        message = torch.zeros(1 + self._width, dtype=torch.float64, device=self._device)
        message[0] = state
        message[1 : 1 + len(values)] = values
        return self._group.gather(message)
