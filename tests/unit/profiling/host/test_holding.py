"""A device that is held: what else may use it meanwhile, and what stays of it."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.host.holding import held
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.transports import LocalTransport


class Board(LocalTransport):
    """This computer under another identity, whose folder another run may use."""

    user: str | None = None

    @property
    def identity(self) -> str:
        return "local-holding-test"

    def claim(self) -> str | None:
        return self.user


@pytest.fixture
def board() -> Board:
    return Board(DeviceConfig("board"))


def is_free(identity: str) -> bool:
    """Whether another process could take a device."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return not pool.apply(_is_held, (identity,))


def _is_held(identity: str) -> bool:
    return DeviceLock(identity, "board").is_held()


def test_a_device_is_held_while_the_block_runs_and_its_folder_is_removed(board: Board) -> None:
    with held(board, "board") as user:
        assert user is None
        assert not is_free(board.identity)
        folder = board.folder
        assert folder.is_dir()
    assert is_free(board.identity)
    assert not folder.exists()


def test_a_device_that_this_computer_uses_is_named_and_left_alone(board: Board, tmp_path: Path) -> None:
    lock = DeviceLock(board.identity, "board")
    lock.acquire()
    folder = board.folder
    with held(board, "board") as user:
        assert user is not None
        assert user.startswith("process ")
    assert not is_free(board.identity)
    assert folder.is_dir()
    lock.release()
    board.cleanup()


def test_a_device_that_another_computer_uses_is_given_back(board: Board) -> None:
    board.user = "another computer (tablet)"
    with held(board, "board") as user:
        assert user == "another computer (tablet)"
    assert is_free(board.identity)


def test_an_error_in_the_block_gives_the_device_back(board: Board) -> None:
    with pytest.raises(ZeroDivisionError), held(board, "board"):
        raise ZeroDivisionError
    assert is_free(board.identity)
