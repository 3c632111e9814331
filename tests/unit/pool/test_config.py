"""The section ``pool``."""

from __future__ import annotations

import re
from typing import Any

import pytest

from autotailor.config import compose, conf_folder
from autotailor.pool.config import PoolConfig
from autotailor.runtime import PoolError


def test_the_default_is_that_of_the_class() -> None:
    section = compose(conf_folder(), "resnet_digits", "host")["pool"]
    assert PoolConfig.from_section(section) == PoolConfig()


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"members": 0}, "pool.members: expected an integer >= 1, not 0"),
        ({"slowdown": 0.5}, "pool.slowdown: expected a number >= 1, not"),
        ({"precision": "int8"}, "pool.precision is 'int8', expected one of fp32, fp16"),
        ({"rounds": 1}, "take 2 or more, or 0"),
        ({"seconds": 0}, "pool.seconds: expected a number"),
        ({"member": 3}, "pool: unknown keys ['member']"),
    ],
)
def test_values_that_cannot_be_used_are_named(section: dict[str, Any], said: str) -> None:
    with pytest.raises(PoolError, match=re.escape(said)):
        PoolConfig.from_section(section)
