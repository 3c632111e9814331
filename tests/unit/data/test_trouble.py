"""The death of a process that prepares images is told in one sentence with its remedy."""

from __future__ import annotations

import os
import signal
import time

import pytest
import torch

from autotailor.data import workers
from autotailor.data.errors import DataError
from autotailor.data.trouble import handover_trouble, reader_trouble


class Dying:
    """Items of which the process that reads the third one is killed, as by a system without memory."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index == 2:
            time.sleep(0.2)  # until both items before are handed over
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(1), index


@pytest.mark.skipif(workers._start_method() != "fork", reason="threads prepare the images here")
def test_a_process_that_is_killed_is_told_of_with_the_remedy() -> None:
    with pytest.raises(DataError, match=r"^a process that prepares images died \(it .*give more memory or lower"):
        list(workers.TrainingLoader(Dying(), 1).batches([[index] for index in range(4)]))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DataLoader worker (pid 7) exited unexpectedly with exit code 1. Details are lost", "it exited unexpectedly)"),
        ("DataLoader worker (pid(s) 7, 8) exited unexpectedly", "it exited unexpectedly)"),
        ("DataLoader worker (pid 7) is killed by signal: Bus error. It is possible", "killed by signal: Bus error)"),
        ("CUDA error: out of memory", ""),
    ],
)
def test_all_forms_of_the_error_are_known_and_others_are_left(text: str, told: str) -> None:
    assert told in reader_trouble(RuntimeError(text))
    assert bool(reader_trouble(RuntimeError(text))) == bool(told)
    assert reader_trouble(ValueError(text)) == ""


def test_a_broken_handover_is_a_death_and_an_error_that_is_passed_on_is_none() -> None:
    assert "it was gone before" in handover_trouble(ConnectionResetError(104, "Connection reset by peer"))
    assert "it was killed" in handover_trouble(RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "))
    assert handover_trouble(ConnectionError("Caught ConnectionError in DataLoader worker process 0.")) == ""
    assert reader_trouble(ConnectionResetError(104, "Connection reset by peer")) == ""
