"""Errors of a broken connection, and those that only happen to arrive while processes talk."""

from __future__ import annotations

import pytest

from autotailor.compute.launch import PeerLostError
from autotailor.data.trouble import reader_trouble
from autotailor.finetuning.training.processes.group import _connected


def test_a_broken_connection_is_another_process_that_has_ended() -> None:
    with pytest.raises(PeerLostError, match="another process of the training has ended"), _connected():
        raise RuntimeError("Connection closed by peer")


def test_the_death_of_a_process_that_prepares_images_is_no_broken_connection() -> None:
    with pytest.raises(RuntimeError) as died, _connected():
        raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")
    assert reader_trouble(died.value)
