"""The death of a process that prepares images is told in one sentence with its remedy."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from autotailor.data import workers
from autotailor.data.trouble import reader_trouble


class Dying:
    """Items of which the process that reads the third one is killed, as by a system without memory."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(1), index


@pytest.mark.skipif(workers._start_method() != "fork", reason="threads prepare the images here")
def test_a_process_that_is_killed_is_told_of_with_the_remedy() -> None:
    with pytest.raises(RuntimeError, match="DataLoader") as died:
        list(workers.TrainingLoader(Dying(), 1).batches([[index] for index in range(4)]))
    said = reader_trouble(died.value)
    assert said.startswith("a process that prepares images died (it ")
    assert "give more memory or lower data.workers" in said


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
