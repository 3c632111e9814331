"""What tests of training share: one thread, whatever the test before has left, and trainings that are refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import autotailor
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, TrainingError


@pytest.fixture(autouse=True)
def single_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def refused(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> Callable[..., None]:
    """``refused(message, key=value ...)``: a training with these parameters is refused before it writes anything."""

    def check(says: str, **parameters: Any) -> None:
        with pytest.raises(TrainingError, match=says):
            finetuning.finetune(plain_net, tiny, replace(finetune_config, **parameters), tmp_path)
        assert not list(tmp_path.iterdir())

    return check
