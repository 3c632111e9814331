"""scikit-learn's handwritten digits (real, shipped with the library), distorted into a harder task."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.data.digits.config import DigitsConfig
from autotailor.data.errors import DataError
from autotailor.data.registry import Dataset, read_config, register

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
        found = find_spec("sklearn")
        if found is None or found.origin is None:
            raise DataError(
                "data digits: scikit-learn, which ships the images, is not installed; install it with "
                "`pip install scikit-learn`"
            )
        table = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
        return hashlib.sha256(gzip.decompress(table.read_bytes())).hexdigest()

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.digits.images import splits

        return splits(self._config)


@register("digits")
def digits(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Digits(read_config(DigitsConfig, section))
