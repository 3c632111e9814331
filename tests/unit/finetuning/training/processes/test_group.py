"""Errors of a broken connection, and those that only happen to arrive while processes talk."""

import threading
from collections.abc import Callable

import pytest
import torch

from autotailor.compute.launch import PeerLostError
from autotailor.compute.placement import CPU
from autotailor.data.trouble import reader_trouble
from autotailor.finetuning import TrainingError
from autotailor.finetuning.training.processes.group import Group, Messages, _connected

SECONDS = 60


def test_a_broken_connection_is_another_process_that_has_ended() -> None:
    with pytest.raises(PeerLostError, match="another process of the training has ended"), _connected():
        raise RuntimeError("Connection closed by peer")


def test_the_death_of_a_process_that_prepares_images_is_no_broken_connection() -> None:
    with pytest.raises(RuntimeError) as died, _connected():
        raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")
    assert reader_trouble(died.value)


class Threads(Group):
    """A group whose processes are threads of this one."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, table: dict[int, torch.Tensor]) -> None:
        self.rank, self.size, self._barrier, self._table = rank, size, barrier, table

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        self._table[self.rank] = tensor.clone()
        self._barrier.wait(SECONDS)
        found = torch.stack([self._table[rank] for rank in range(self.size)])
        self._barrier.wait(SECONDS)
        return found


def together(*parts: Callable[[Messages], object]) -> list[object]:
    """What each function returns or raises, each in a thread, all with messages of up to four numbers."""
    barrier, table = threading.Barrier(len(parts)), dict[int, torch.Tensor]()
    found: list[object] = [None] * len(parts)

    def one(rank: int) -> None:
        try:
            found[rank] = parts[rank](Messages(Threads(rank, len(parts), barrier, table), 4, CPU))
        except TrainingError as error:
            found[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    return found


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_all_get_what_all_send() -> None:
    first, second = together(*(lambda m, x=x: m.send(numbers(x, 2 * x)).tolist() for x in (1.0, 3.0)))
    assert first == second == [[1.0, 2.0], [3.0, 6.0]]


def attempt(layers: int) -> Callable[[Messages], object]:
    """An attempt that sends so many messages and ends well."""

    def run(messages: Messages) -> object:
        for _ in range(layers):
            messages.send(numbers(1.0))
        found = messages.end(numbers(7.0))
        return None if found is None else found.tolist()

    return run


def failing(layers: int) -> Callable[[Messages], object]:
    """An attempt for which memory runs out after so many messages."""

    def run(messages: Messages) -> object:
        for _ in range(layers):
            messages.send(numbers(1.0))
        messages.fail()
        return "failed"

    return run


def test_attempts_that_end_well_exchange_their_last_message() -> None:
    assert together(attempt(3), attempt(3)) == [[[7.0], [7.0]]] * 2


@pytest.mark.parametrize("failed", [[0], [2], [3], [0, 3], [1, 1]], ids=str)
def test_an_attempt_fails_for_all_where_it_fails_for_one(failed: list[int]) -> None:
    found = together(attempt(3), *(failing(layers) for layers in failed))
    assert found == [None, *["failed"] * len(failed)]


def test_all_may_fail() -> None:
    assert together(failing(2), failing(0)) == ["failed", "failed"]


def test_another_network_in_another_process_is_an_error() -> None:
    found = together(attempt(2), lambda messages: [messages.send(numbers(1.0)) for _ in range(3)])
    assert isinstance(found[0], TrainingError)
    assert "process 1 runs more layers of BatchNorm in a step than process 0" in str(found[0])


def test_a_message_that_is_too_long_is_refused() -> None:
    with pytest.raises(TrainingError, match="BatchNorm over 3 channels"):
        Messages(Group(), 4, CPU).send(numbers(*range(6)))
