"""The samples of tar files: where each picture lies, and its label; pictures themselves are not read.

Consecutive files whose paths differ only behind the first dot of their name are one sample, as in the library
webdataset: ``0001.jpg`` and ``0001.cls``.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import groupby
from pathlib import Path

from autotailor.data.errors import DataError
from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.listing import is_picture


@dataclass(frozen=True)
class Sample:
    """One sample of a shard.

    Attributes:
        key: path of its files up to the first dot of the name.
        offset, size: of the picture's bytes within the shard.
        label: ``UNKNOWN`` where labels are not read.
    """

    key: str
    offset: int
    size: int
    label: int


def find_shards(name: str, key: str, patterns: Sequence[str]) -> list[Path]:
    """The files that patterns with braces (``train-{000..099}.tar``) and wildcards name, in their order.

    Args:
        name: of the dataset, for messages.
        key: of the configuration that holds the patterns, for messages.
        patterns: of paths; ``~`` is the home folder.

    Raises:
        DataError: a pattern names no file, or a file twice.
    """
    from braceexpand import braceexpand

    shards: list[Path] = []
    for pattern in patterns:
        for path in braceexpand(str(Path(pattern).expanduser())):
            wild = has_magic(path)
            files = sorted(map(Path, glob(path))) if wild else [Path(path)]  # noqa: PTH207 (wildcards in folders, too)
            if missing := [file for file in files if not file.is_file()] or ([] if files else [Path(path)]):
                raise DataError(f"data {name}: no file {missing[0]}; put the shard there, or correct data.{key}")
            shards += files
    if not shards or len(set(shards)) < len(shards):
        raise DataError(f"data {name}: set data.{key} to shards (.tar), each of them once, not to {list(patterns)}")
    return shards


def scan(shard: Path, label: str) -> list[Sample]:
    """The samples of a shard.

    Args:
        shard: an uncompressed tar file.
        label: suffix of the files with labels, each a whole number as text; "" does not read labels.

    Raises:
        DataError: the file is no tar file, or a sample has no picture, several pictures, or no label.
    """
    try:
        with tarfile.open(shard, "r:") as archive:
            return [_sample(shard, archive, key, list(files), label) for key, files in groupby(_files(archive), _key)]
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{shard} cannot be read as an uncompressed tar file ({error}); write it again") from error


def _files(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The files of samples; the library, too, leaves out what begins with a folder such as ``__info__``."""
    for file in archive:
        if file.isreg() and "." in Path(file.name).name and not re.match(r"__[^/]*__($|/)", file.name):
            yield file


def _key(file: tarfile.TarInfo) -> str:
    folder, _, name = file.name.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}" if folder else name.partition(".")[0]


def _suffix(file: tarfile.TarInfo) -> str:
    return file.name.rpartition("/")[2].partition(".")[2].lower()


def _sample(shard: Path, archive: tarfile.TarFile, key: str, files: list[tarfile.TarInfo], label: str) -> Sample:
    pictures = [file for file in files if is_picture(file.name)]
    if len(pictures) != 1:
        raise DataError(
            f"{shard}: sample {key} has {len(pictures)} pictures among {', '.join(file.name for file in files)}; each "
            f"sample needs one"
        )
    (picture,) = pictures
    return Sample(key, picture.offset_data, picture.size, _label(shard, archive, key, files, label))


def _label(shard: Path, archive: tarfile.TarFile, key: str, files: list[tarfile.TarInfo], label: str) -> int:
    if not label:
        return UNKNOWN
    label_file = next((file for file in files if _suffix(file) == label), None)
    stream = None if label_file is None else archive.extractfile(label_file)
    text = b"" if stream is None else stream.read().strip()
    if not text.isdigit():
        what = f"holds {text[:20]!r}" if label_file else "is missing"
        raise DataError(
            f"{shard}: {key}.{label} {what}; it must hold the number of the class as text, from 0 on (data.label names "
            f"the suffix; data.labels: false does without labels)"
        )
    return int(text)
