"""scikit-learn's handwritten digits (real, shipped with the library), distorted into a harder task."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotailor.data.digits.config import DigitsConfig
from autotailor.data.digits.table import content
from autotailor.data.registry import Dataset, register

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits


class Digits(Dataset):
    """The dataset of the default configuration."""

    def __init__(self, config: DigitsConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Passes always, because the images come with scikit-learn."""

    def classes(self) -> tuple[str, ...]:
        """The ten digits as text."""
        return tuple("0123456789")

    def fingerprint(self) -> str:
        """SHA-256 of scikit-learn's table, uncompressed."""
        return hashlib.sha256(content()).hexdigest()

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.digits.images import splits

        return splits(self._config)


@register("digits")
def digits(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Digits(DigitsConfig.from_section(section))
