"""Deterministic work leaves PyTorch's global state as it was."""

from __future__ import annotations

import contextlib

import pytest
import torch

from autotailor.accuracy.determinism import deterministic


def state() -> tuple[object, ...]:
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    return torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), filling


@pytest.mark.parametrize("fails", [False, True])
def test_threads_algorithms_and_random_numbers_are_as_before(fails: bool) -> None:
    before, numbers = state(), torch.get_rng_state()
    with contextlib.suppress(KeyError), deterministic(2):
        assert state() == (2, True, False)
        torch.rand(3)
        if fails:
            raise KeyError
    assert state() == before
    assert torch.equal(torch.get_rng_state(), numbers)


def test_an_operation_without_a_deterministic_algorithm_is_refused_inside() -> None:
    with deterministic(1), pytest.raises(RuntimeError, match="deterministic"):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
