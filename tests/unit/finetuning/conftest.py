"""Tests of training start each with one thread, whatever the one before has left."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def single_thread() -> None:
    torch.set_num_threads(1)
