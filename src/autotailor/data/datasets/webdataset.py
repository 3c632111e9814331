"""WebDataset shards: tar files of pictures and labels (``0001.jpg`` beside ``0001.cls``), read from front to back.

The library is an optional extra (``pip install autotailor[webdataset]``). Shards are files of this machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.examination import listed, refusals
from autotailor.data.files.contents import digest, read_contents, verdict_on
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.division import divide
from autotailor.data.progress import progress
from autotailor.data.registry import Dataset, register
from autotailor.data.shards.scanning import Sample, find_shards, scan
from autotailor.values import Positive, Told

if TYPE_CHECKING:
    from autotailor.data.pictures.stream import Pictures
    from autotailor.data.splits import DataSplits


Paths = Annotated[tuple[str, ...], Told("a list of paths")]


class WebdatasetConfig(PictureConfig):
    """Parameters of ``webdataset``.

    Attributes:
        train: shards of training: paths with braces (``train-{000..099}.tar``) or wildcards.
        validation: shards of validation.
        test: shards of the test set; empty takes half of the validation pictures, drawn by the seed.
        label: suffix of the files with labels, each a whole number as text.
        buffer: number of samples from which the next training image is drawn.
    """

    train: Paths = ()
    validation: Paths = ()
    test: Paths = ()
    label: str = "cls"
    buffer: Positive = 1000


@dataclass(frozen=True)
class Stored:
    """Opens held-out pictures by their number.

    Attributes:
        samples: each with its shard.
        background: what transparent pixels stand over, as ``data.background``.
    """

    samples: Sequence[tuple[Path, Sample]]
    background: str = "white"

    def __call__(self, index: int) -> Any:
        """The picture, RGB and upright.

        Raises:
            DataError: the picture cannot be read.
        """
        from autotailor.data.pictures.reading import PictureError, read_picture

        shard, sample = self.samples[index]
        try:
            return read_picture(self.content(index), self.background)
        except (PictureError, OSError) as error:
            raise DataError(f"{shard}: sample {sample.key} {error}") from error

    def content(self, index: int) -> bytes:
        """The bytes of a picture."""
        shard, sample = self.samples[index]
        with shard.open("rb") as stream:
            stream.seek(sample.offset)
            return stream.read(sample.size)


class Webdataset(Dataset):
    """Pictures in shards."""

    PLACES = ("train", "validation", "test")

    def __init__(self, config: WebdatasetConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Raises DataError where the library or a shard is missing."""
        try:
            import webdataset  # noqa: F401
        except ImportError as error:
            raise DataError(
                f"data {self._config.name}: the library webdataset is not installed; "
                f"`pip install autotailor[webdataset]`"
            ) from error
        assert self._shards

    def classes(self) -> tuple[str, ...] | None:
        """None, because shards do not name their classes."""
        return None

    def verify(self) -> None:
        """See Dataset; the result is remembered for shards that do not change."""
        from autotailor.data.pictures.reading import EXAMINER

        if verdict := verdict_on(self.fingerprint(), f"shards 1, {EXAMINER}", self._examine):
            raise DataError(f"data {self._config.name}: pictures cannot be used:\n{verdict}")

    def fingerprint(self) -> str:
        """SHA-256 over the contents of the shards, in their order within each part."""
        return self._digest(tuple(self._shards))

    def training_fingerprint(self) -> str:
        """See Dataset."""
        return self._digest(tuple(part for part in self._shards if part != "test"))

    def _digest(self, parts: tuple[str, ...]) -> str:
        shards = {f"{part}/{i:06}": path for part in parts for i, path in enumerate(self._shards[part])}
        return digest(list(shards), read_contents(list(shards.values()), f"reading {self._config.name}"))

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.stream import splits
        from autotailor.data.shards.stream import ShardStream

        self.verify()
        config = self._config
        samples = {part: self._samples(part) for part in self._shards}
        classes = self._count(samples)
        held = self._pictures([*samples["validation"], *samples.get("test", [])])
        validation, test = (held.part(ids) for ids in self._held_out(held, len(samples["validation"]), classes))
        label = config.label if config.labels else ""
        stream = ShardStream(config, self._shards["train"], len(samples["train"]), label, config.buffer)
        return replace(splits(config, classes, self._pictures([]), validation, test), train=stream)

    def _held_out(self, held: Pictures, validation: int, classes: int) -> list[npt.NDArray[np.int64]]:
        """Positions of the pictures of validation and test; without test shards, halves of the validation pictures."""
        if validation < len(held.labels):
            positions = np.arange(len(held.labels), dtype=np.int64)
            return [positions[:validation], positions[validation:]]
        config, names = self._config, tuple(map(str, range(classes)))
        labels, contents = held.labels.tolist(), [str(group) for group in held.groups]
        return divide(config.name, names if config.labels else (), labels, contents, (1, 1), config.seed)

    @cached_property
    def _shards(self) -> dict[str, list[Path]]:
        config = self._config
        test = {"test": config.test} if config.test else {}
        parts = {"train": config.train, "validation": config.validation, **test}
        return {part: find_shards(config.name, part, patterns) for part, patterns in parts.items()}

    def _samples(self, part: str) -> list[tuple[Path, Sample]]:
        label = self._config.label if self._config.labels else ""
        samples = []
        with progress(f"listing the {part} shards of {self._config.name}", len(self._shards[part])) as advance:
            for shard in self._shards[part]:
                samples += [(shard, sample) for sample in scan(shard, label)]
                advance()
        if not samples:
            raise DataError(f"data {self._config.name}: the {part} shards have no samples")
        return samples

    def _count(self, samples: Mapping[str, Sequence[tuple[Path, Sample]]]) -> int:
        """The number of classes: labels of training are 0, 1, 2 ..., and no other part has further ones."""
        if not self._config.labels:
            return 0
        labels = {part: {sample.label for _, sample in pairs} for part, pairs in samples.items()}
        count = len(labels["train"])
        for part, own in labels.items():
            if strange := sorted(own - set(range(count))):
                raise DataError(
                    f"data {self._config.name}: {part} has the label {strange[0]}, but training has {count} different "
                    f"labels; number the classes from 0 on without gaps"
                )
        return count

    def _pictures(self, samples: Sequence[tuple[Path, Sample]]) -> Pictures:
        from autotailor.data.pictures.stream import Pictures

        opened = Stored(samples, self._config.background)
        contents = [hashlib.sha256(opened.content(i)).hexdigest() for i in range(len(samples))]
        groups = np.unique(contents, return_inverse=True)[1].astype(np.int64)
        return Pictures(opened, np.array([sample.label for _, sample in samples], dtype=np.int64), groups)

    def _examine(self) -> str:
        """The pictures that cannot be used, a line for each; "" where all can be used."""
        samples = [sample for part in self._shards for sample in self._samples(part)]
        return listed(refusals(f"checking the pictures of {self._config.name}", len(samples), Stored(samples)))


@register("webdataset")
def webdataset(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Webdataset(WebdatasetConfig.from_section(section))
