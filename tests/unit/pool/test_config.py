"""The section ``pool``."""

import re
from dataclasses import replace
from typing import Any

import pytest

from autotailor.config import compose, conf_folder
from autotailor.finetuning import FinetuneConfig
from autotailor.pool.config import PoolConfig
from autotailor.serving import PoolError


def test_the_default_is_that_of_the_class() -> None:
    section = compose(conf_folder(), "resnet_digits", "host")["pool"]
    assert PoolConfig.from_section(section) == PoolConfig()


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"members": 0}, "pool.members: expected an integer >= 1, not 0"),
        ({"slowdown": 0.5}, "pool.slowdown: expected a number >= 1, not"),
        ({"precision": "int8"}, "pool.precision: unknown precision 'int8'; known are fp32, fp16"),
        ({"rounds": 1}, "take 2 or more, or 0"),
        ({"seconds": 0}, "pool.seconds: expected a number"),
        ({"epochs": -1}, "pool.epochs: expected an integer >= 0, not -1"),
        ({"lr_share": 0}, "pool.lr_share: expected a number > 0, not 0"),
        ({"member": 3}, "pool: unknown keys ['member']"),
    ],
)
def test_values_that_cannot_be_used_are_named(section: dict[str, Any], said: str) -> None:
    with pytest.raises(PoolError, match=re.escape(said)):
        PoolConfig.from_section(section)


def test_the_members_train_as_the_supernet_did_but_for_epochs_and_rate() -> None:
    composed = compose(conf_folder(), "resnet_digits", "host", ["finetune.resume_from=a.ckpt"])
    section = PoolConfig(epochs=5, lr_share=0.25).training(composed["finetune"])
    config, before = FinetuneConfig.from_section(section), FinetuneConfig.from_section(composed["finetune"])
    assert config == replace(before, epochs=5, lr=before.lr / 4, sort=False, resume_from=None)
    assert before.sort
    assert before.resume_from == "a.ckpt"


def test_a_file_of_the_group_leaves_the_training_out() -> None:
    section = compose(conf_folder(), "resnet_digits", "host", ["pool=inherited"])["pool"]
    assert PoolConfig.from_section(section) == PoolConfig(name="inherited", epochs=0)
