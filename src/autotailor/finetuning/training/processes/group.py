"""The processes that train one network together, and how they exchange tensors (``torch.distributed``).

Tensors on the processor go through gloo, those on CUDA through NCCL. What several processes have computed is added up
in the same order each time, so that a training is repeated bit by bit with the same number of processes.

All processes send messages of one size in the same order, so that no process waits for one that has failed. Within an
attempt at a step each BatchNorm sends one message forwards and one backwards; the last message of an attempt says how
the attempt ended. A process whose memory was too small cannot send what the others wait for. It sends messages that say
FAILED instead, until every other process has come to its last message. Then all know that the attempt is to be repeated
with fewer images. Nobody looks into a message before the last one, so that an accelerator never waits for the processor
within an attempt.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from typing import Protocol

import torch
import torch.distributed as dist
from torch import nn

from autotailor.compute.accelerator import resolve
from autotailor.compute.launch import PeerLostError
from autotailor.data.splits import Shard
from autotailor.data.trouble import reader_trouble
from autotailor.finetuning.errors import TrainingError

TIMEOUT = timedelta(hours=1)
"""Longest time that a process waits for another; a process that has ended is noticed earlier, by its connections."""

RUNNING, ENDED, FAILED = 0.0, 1.0, 2.0


class Asked(Protocol):
    """The parameters that say how many processes train together."""

    @property
    def processes(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def accelerator(self) -> str: ...


class Group:
    """One process alone, for which there is nothing to exchange.

    Attributes:
        rank: number of this process, from 0.
        size: number of processes.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    @property
    def shard(self) -> Shard:
        """The part of each batch that this process trains on."""
        return Shard(self.rank, self.size)

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensors of all processes, ``[size, *shape]``; they have one shape and lie on one kind of device."""
        return tensor.unsqueeze(0)

    def add_up(self, tensor: torch.Tensor) -> None:
        """Replaces a contiguous tensor by the sum over all processes."""

    def text_of_first(self, text: str) -> str:
        """The text that the first process has given."""
        return text

    def copy_first(self, module: nn.Module) -> None:
        """Gives the module of each process the parameters and buffers of the first process."""


class Processes(Group):
    """Processes that ``torch.distributed`` has connected."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        gathered = tensor.new_empty(self.size * tensor.numel())
        with _connected():
            dist.all_gather_into_tensor(gathered, tensor.reshape(-1).contiguous())
        return gathered.view(self.size, *tensor.shape)

    def add_up(self, tensor: torch.Tensor) -> None:
        with _connected():
            dist.all_reduce(tensor)

    def text_of_first(self, text: str) -> str:
        texts = [text]
        with _connected():
            dist.broadcast_object_list(texts, src=0, device=torch.device("cpu"))
        return texts[0]

    @torch.no_grad()
    def copy_first(self, module: nn.Module) -> None:
        for tensor in chain(module.parameters(), module.buffers()):
            dense = tensor.detach().clone(memory_format=torch.contiguous_format)
            with _connected():
                dist.broadcast(dense, src=0)
            if self.rank:
                tensor.copy_(dense)


@contextmanager
def _connected() -> Iterator[None]:
    """Turns the errors of a broken connection into one that says where to look.

    The death of a process that prepares images interrupts whatever runs, also where all connections are sound.
    """
    try:
        yield
    except RuntimeError as error:
        if reader_trouble(error):
            raise
        raise PeerLostError(
            f"another process of the training has ended or cannot be reached ({str(error).splitlines()[0][:200]})"
        ) from error


def join(team: Asked) -> Group:
    """The group of processes that a configuration asks for; connects this process at the first call.

    On CUDA the process gets the GPU with its number on this machine.

    Raises:
        TrainingError: the process was not started together with others, there are more or fewer than asked for, or this
            machine has too few GPUs.
    """
    size = team.processes * team.nodes
    if size == 1:
        return Group()
    if not dist.is_initialized():
        _connect(team, size)
    if dist.get_world_size() != size:
        raise TrainingError(
            f"processes {team.processes} on nodes {team.nodes}: expected {size} processes, and "
            f"{dist.get_world_size()} were started; start as many as the configuration says"
        )
    return Processes()


def _connect(team: Asked, size: int) -> None:
    if "RANK" not in os.environ:
        raise TrainingError(
            f"processes {team.processes} on nodes {team.nodes}: this process was started alone. The rules of the "
            f"workflow start all {size}; start a program of your own with torchrun --nproc-per-node {team.processes}"
        )
    kind, local = resolve(team.accelerator).type, int(os.environ["LOCAL_RANK"])
    if kind not in ("cpu", "cuda"):
        raise TrainingError(f"processes {team.processes} cannot train on {kind}; set accelerator to cpu")
    if kind == "cuda" and (count := torch.cuda.device_count()) <= local:
        raise TrainingError(
            f"processes {team.processes}: each needs a GPU of its own, and this machine has {count}; set processes to "
            f"{count}, or accelerator to cpu"
        )
    if kind == "cuda":
        torch.cuda.set_device(local)
    device = torch.device(kind, local) if kind == "cuda" else None
    backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"
    with _connected():
        dist.init_process_group(backend, timeout=TIMEOUT, device_id=device)


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
        ends = self._exchange(ENDED, values)
        states = ends[:, 0].tolist()
        if RUNNING in states:
            raise TrainingError(
                f"process {states.index(RUNNING)} runs more layers of BatchNorm in a step than process "
                f"{self._group.rank}; the network must not depend on the values of its images, or set sync_batch_norm "
                f"to false"
            )
        return None if FAILED in states else ends[:, 1 : 1 + len(values)]

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
