"""Work side by side and in turn."""

import threading

import pytest
import torch

from autotailor.compute.turns import InTurn, executor


def test_the_processor_works_in_threads_and_an_accelerator_in_the_calling_thread() -> None:
    with executor(2, torch.device("cpu")) as threads, executor(2, torch.device("cuda")) as turn:
        assert threads.submit(threading.get_ident).result() != threading.get_ident()
        assert turn.submit(threading.get_ident).result() == threading.get_ident()


def test_in_turn_an_item_runs_when_its_result_is_asked_for() -> None:
    seen: list[int] = []
    results = InTurn().map(lambda x, y: seen.append(x) or x + y, [1, 2], [10, 20])
    assert seen == []
    assert next(results) == 11
    assert seen == [1]
    assert list(results) == [22]


def test_in_turn_an_error_comes_at_once_so_that_nothing_behind_it_runs() -> None:
    with pytest.raises(ZeroDivisionError):
        InTurn().submit(lambda: 1 / 0)
