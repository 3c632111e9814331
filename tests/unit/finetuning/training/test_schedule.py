"""The learning rate over the steps of a training."""

import pytest

from autotailor.finetuning import (
    PretrainConfig,
)
from autotailor.finetuning.training.schedule import learning_rate


def test_the_learning_rate_rises_and_falls() -> None:
    config = PretrainConfig(epochs=1, lr=1.0, warmup=0.1)
    rates = [learning_rate(config, step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates.index(max(rates)) == 9
    assert rates[-1] < 0.001
