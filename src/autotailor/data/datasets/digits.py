"""scikit-learn's handwritten digits (real, shipped with the library), distorted into a harder task."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.data.distortion import Distortion
from autotailor.data.errors import DataError
from autotailor.data.registry import Dataset, read_config, register
from autotailor.sections import check_integers

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits


@dataclass(frozen=True)
class DigitsConfig(Distortion):
    """Parameters of ``digits``, beside the ranges of its distortion.

    Attributes:
        seed: of the split, of the training stream and of the evaluation sets.
        resolution: side of the images, pixels.
        train_images: images per epoch of the training stream.
        evaluation_images: least number of images that validation and test are each expanded to.
        fractions: parts of the base images for training, validation and test.
    """

    name: str = "digits"
    seed: int = 0
    resolution: int = 32
    train_images: int = 4096
    evaluation_images: int = 2500
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {"seed": 0, "resolution": 8, "train_images": 1, "evaluation_images": 1}
        check_integers(self, least, "digits", DataError)
        if len(self.fractions) != 3 or min(self.fractions) <= 0 or sum(self.fractions) > 1 + 1e-9:
            raise DataError(
                f"digits fractions: expected three positive parts (train, validation, test) "
                f"that sum to at most 1, not {list(self.fractions)}"
            )

    @property
    def distortion(self) -> Distortion:
        """The ranges alone."""
        return Distortion(**{f.name: getattr(self, f.name) for f in fields(Distortion)})


class Digits(Dataset):
    """The embedded default."""

    def __init__(self, config: DigitsConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Nothing can be missing: the images come with scikit-learn."""

    def classes(self) -> tuple[str, ...]:
        """The digits."""
        return tuple("0123456789")

    def fingerprint(self) -> str:
        """SHA-256 of scikit-learn's table, uncompressed."""
        found = find_spec("sklearn")
        if found is None or found.origin is None:
            raise DataError("data digits: scikit-learn is not installed; its handwritten digits come with it")
        table = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
        return hashlib.sha256(gzip.decompress(table.read_bytes())).hexdigest()

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.digit_images import splits

        return splits(self._config)


@register("digits")
def digits(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Digits(read_config(DigitsConfig, section))
