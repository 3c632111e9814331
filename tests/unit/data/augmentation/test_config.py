"""Parameters of augmentation: what they switch on, and what is refused."""

from __future__ import annotations

import pytest

from autotailor.data import DataError
from autotailor.data.augmentation.config import AugmentationConfig


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (
            {"policy": "autoaugment"},
            r"augmentation\.policy: unknown policy 'autoaugment'; known are none, randaugment",
        ),
        ({"policy": None}, r"augmentation\.policy: unknown policy None"),
        ({"operations": 0}, r"augmentation\.operations: expected an integer >= 1, not 0"),
        ({"magnitude": 31}, r"augmentation\.magnitude: expected an integer from 0 to 30, not 31"),
        ({"magnitude": 4.5}, r"augmentation\.magnitude: expected an integer"),
        ({"erasing": 1.1}, r"augmentation\.erasing: expected a number >= 0 and <= 1, not 1"),
        ({"mixup": -0.1}, r"augmentation\.mixup: expected a number >= 0"),
        ({"cutmix": float("nan")}, r"augmentation\.cutmix: expected a number >= 0"),
        ({"cutmixup": 1.0}, r"unknown keys \['cutmixup'\]"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(section: dict[str, object], says: str) -> None:
    with pytest.raises(DataError, match=says):
        AugmentationConfig.from_section(section)


@pytest.mark.parametrize(
    ("config", "changes_images", "mixes"),
    [
        (AugmentationConfig(), False, False),
        (AugmentationConfig(policy="randaugment"), True, False),
        (AugmentationConfig(erasing=0.5), True, False),
        (AugmentationConfig(mixup=0.2), False, True),
        (AugmentationConfig(cutmix=1.0), False, True),
    ],
    ids=str,
)
def test_each_part_is_off_by_default(config: AugmentationConfig, changes_images: bool, mixes: bool) -> None:
    assert (config.changes_images, config.mixes) == (changes_images, mixes)
