"""Signals in arrays: windows of sensors, spectrograms, pictures of any number of channels.

``data.root`` is an ``.npz`` file, or a folder of ``.npy`` files, which are mapped into memory, with these arrays:

    x_train, y_train        signals and their labels; x_val, y_val and x_test, y_test where the user divided them
    x, y                    otherwise, to be divided by ``data.fractions``
    groups_train, groups    what signals have in common, such as a person, where known: one group stays in one part

Signals are ``[n, channels, length]``, ``[n, channels, height, width]``, or ``[n, length]`` of one channel; with
``layout: last`` the channels stand last. Labels are numbers of classes from 0 on, or names; where the task is
``regression``, they are finite numbers ``[n]`` or ``[n, k]``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import psutil

from autotailor.data.errors import DataError
from autotailor.data.files.contents import digest, read_contents, verdict_on
from autotailor.data.fractions import Fractions
from autotailor.data.labels import CLASSIFICATION, UNKNOWN, has_numbers, name_numbers, scaled
from autotailor.data.pictures import parts as parting
from autotailor.data.pictures.parts import NAMES
from autotailor.data.registry import Dataset, register
from autotailor.sections import Section
from autotailor.values import AboveZero, Flag, Natural, NotNegative, Number, OneOf

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

Array = npt.NDArray[Any]
LAYOUTS = ("first", "last")
READ = 4096  # signals that are read at once
EXAMINER = "finite signals 1"  # verdicts by other rules are not reused


class ArraysConfig(Section, of="data", error=DataError):
    """Parameters of ``arrays``.

    Attributes:
        name: name of the data in results and messages.
        root: an ``.npz`` file, or a folder of ``.npy`` files.
        labels: whether labels are read. Without them the original network teaches alone.
        task: what is right, as for pictures.
        seed: of the division, of order and of changes.
        fractions: shares of training, validation and test where the signals are divided here.
        layout: whether the channels of a signal stand first or last.
        mean: subtracted from each channel; that with which the network was trained. An empty list takes that of
            the training signals.
        std: what remains is divided by it, for each channel; empty as for ``mean``. Signals of bytes are first divided
            by 255.
        shift: training signals are moved along their length by up to so many numbers to either side; what leaves at one
            end comes back at the other.
        noise: standard deviation of what is added to the numbers of training signals, in units of ``std``.
        kind: which dataset reads the section, ``arrays``.
    """

    name: str
    root: str = ""
    labels: Flag = True
    task: str = CLASSIFICATION
    seed: Natural = 0
    fractions: Fractions = (0.8, 0.1, 0.1)
    layout: Annotated[str, OneOf(*LAYOUTS)] = "first"
    mean: tuple[Number, ...] = ()
    std: tuple[AboveZero, ...] = ()
    shift: Natural = 0
    noise: NotNegative = 0.0
    kind: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class Part:
    """One part of the data as it was given: array, labels (``UNKNOWN`` where there are none) and groups."""

    values: Array
    labels: Array
    groups: npt.NDArray[np.int64]


class Arrays(Dataset):
    """A dataset of signals in arrays."""

    PLACES = ("root",)

    def __init__(self, config: ArraysConfig) -> None:
        self._config, self._root = config, Path(config.root).expanduser()

    @property
    def has_labels(self) -> bool:
        """Whether there are arrays of labels."""
        return any(name.partition("_")[0] == "y" for name in self._arrays)

    def check(self) -> None:
        """Raises DataError where arrays are missing or do not fit each other; numbers are not looked at."""
        self._parts()

    def verify(self) -> None:
        """Raises DataError also where a number of a signal is not finite; a content is looked at once."""
        if verdict := verdict_on(self.fingerprint(), EXAMINER, self._not_finite):
            raise self._refusal(verdict)

    def _not_finite(self) -> str:
        """The first signal with numbers that are not finite, and what to do; "" where there is none."""
        for name, part in self._parts().items():
            for first in range(0, len(part.values), READ):
                bad = ~np.isfinite(np.asarray(part.values[first : first + READ], dtype=np.float64))
                if bad.any():
                    row = first + int(np.flatnonzero(bad.reshape(len(bad), -1).any(1))[0])
                    return f"signal {row} of x_{name} holds numbers that are not finite; leave it out"
        return ""

    def classes(self) -> tuple[str, ...] | None:
        """Names of labels that are names; numbers from 0 to the largest where they are classes; ``y`` or ``y0`` ..."""
        return self._classes_and_labels[0] if self._config.labels else None

    def fingerprint(self) -> str:
        """See Dataset."""
        files = self._files()
        return digest([path.name for path in files], read_contents(files, f"reading {self._config.name}"))

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.files.signals import Signals, SignalSet, SignalStream
        from autotailor.data.preparation import Signal
        from autotailor.data.splits import DataSplits

        config, parts = self._config, self._parts()
        self.verify()
        chosen = [(parts[name], positions) for name, positions in self._divided(parts)]
        last = config.layout == "last"
        plain = Signals(chosen[0][0].values, chosen[0][1], last)
        measured = plain.statistics() if not (config.mean and config.std) else ((), ())
        mean, std = config.mean or measured[0], config.std or measured[1]
        if not len(mean) == len(std) == plain.shape[0]:
            raise self._refusal(
                f"data.mean has {len(mean)} and data.std {len(std)} numbers, the signals have {plain.shape[0]} "
                f"channels; give one number for each, none for those of the training signals, or another data.layout"
            )
        train, *held = (Signals(part.values, positions, last, mean, std) for part, positions in chosen)
        labels, *held_labels = (part.labels[positions] for part, positions in chosen)
        groups = [part.groups[positions] for part, positions in chosen[1:]]
        task = scaled(config.task, labels) if config.labels else config.task
        sets = [SignalSet(*each, task) for each in zip(held, held_labels, groups, strict=True)]
        return DataSplits(
            name=config.name,
            num_classes=len(self.classes() or ()),
            resolution=plain.shape[-1],
            train=SignalStream(train, labels, config.seed, config.shift, config.noise),
            validation=sets[0],
            test=sets[1],
            mean=mean,
            std=std,
            labelled=config.labels,
            signal=Signal(plain.shape, (*plain.values.shape[1:],), config.layout, plain.scale),
        )

    def _divided(self, parts: Mapping[str, Part]) -> Iterable[tuple[str, npt.NDArray[np.int64]]]:
        """Part and positions of training, validation and test; a group with signals of several classes stays whole."""
        alone = all(
            part.labels.ndim == 1 and len(np.unique(part.groups)) == len(part.groups) for part in parts.values()
        )
        to_divide = {
            name: parting.Part(
                (part.labels if alone else np.full(len(part.labels), UNKNOWN)).tolist(),
                [str(group) for group in part.groups],
            )
            for name, part in parts.items()
        }
        return parting.assign(self._config, (self.classes() or ()) if alone else (), to_divide)

    def _files(self) -> list[Path]:
        if self._root.is_dir():
            return sorted(path for path in self._root.iterdir() if path.suffix == ".npy" and path.is_file())
        return [self._root] if self._root.suffix == ".npz" and self._root.is_file() else []

    @cached_property
    def _arrays(self) -> Mapping[str, Array]:
        """The arrays by name, in small letters."""
        files = self._files()
        if not files:
            raise self._refusal("it is neither an .npz file nor a folder of .npy files; set data.root to one")
        try:
            if self._root.is_dir():
                return {path.stem.lower(): np.load(path, mmap_mode="r", allow_pickle=False) for path in files}
            self._check_unpacked()
            with np.load(self._root, allow_pickle=False) as archive:
                return {name.lower(): archive[name] for name in archive.files}
        except (OSError, ValueError, MemoryError, zipfile.BadZipFile) as error:
            raise self._refusal(
                f"it cannot be read ({error}); write plain numbers with numpy.save or numpy.savez"
            ) from error

    def _check_unpacked(self) -> None:
        """Raises DataError where the archive unpacks to more than the free memory; nothing is unpacked for that."""
        with zipfile.ZipFile(self._root) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > (free := psutil.virtual_memory().available):
            raise self._refusal(
                f"it unpacks to {size:,} bytes, and {free:,} of memory are free; write each array with numpy.save into "
                f"a folder, from which signals are read as they are needed"
            )

    @cached_property
    def _classes_and_labels(self) -> tuple[tuple[str, ...], Mapping[str, Array]]:
        """Names of the classes, and the labels of each array of labels as their numbers."""
        whole = {name: np.asarray(array) for name, array in self._arrays.items() if name.partition("_")[0] == "y"}
        if not whole:
            raise self._refusal("it has no labels y_train or y; add them, or set data.labels to false")
        if has_numbers(self._config.task):
            return self._numbers(whole)
        flat = {name: array.reshape(-1) for name, array in whole.items()}
        given = {
            name: np.char.decode(array, "utf-8", "backslashreplace") if array.dtype.kind == "S" else array
            for name, array in flat.items()
        }
        if all(array.dtype.kind == "U" for array in given.values()):
            names = sorted({str(each) for array in given.values() for each in np.unique(array)})
            numbers = {name: np.searchsorted(names, array) for name, array in given.items()}
            return tuple(names), {name: array.astype(np.int64) for name, array in numbers.items()}
        for name, array in given.items():
            if array.dtype.kind not in "iub" or array.min(initial=0) < 0:
                raise self._refusal(
                    f"labels {name} are {array.dtype}; give the number of each class from 0 on, or its name; "
                    f"numbers that are no classes want data.task regression"
                )
        last = max(int(array.max(initial=0)) for array in given.values())
        return tuple(map(str, range(last + 1))), {name: array.astype(np.int64) for name, array in given.items()}

    def _numbers(self, given: Mapping[str, Array]) -> tuple[tuple[str, ...], Mapping[str, Array]]:
        """Names of the numbers, and the arrays of labels that are numbers, float32 ``[n, k]``."""
        for name, array in given.items():
            if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
                raise self._refusal(
                    f"labels {name} are {array.dtype} {list(array.shape)}, and data.task is regression; give finite "
                    f"numbers [n] or [n, k]"
                )
            if len(bad := np.argwhere(~np.isfinite(array))):
                row, *column = bad[0].tolist()
                place = f"row {row}" + (f", column {column[0]}" if column else "")
                raise self._refusal(f"{place} of {name} is {array[tuple(bad[0])]}; leave it out, or correct it")
        numbers = {name: array.reshape(len(array), -1).astype(np.float32) for name, array in given.items()}
        if len(sizes := {array.shape[1] for array in numbers.values()}) > 1:
            raise self._refusal(f"labels of its parts have {sorted(sizes)} columns; give each signal as many numbers")
        return name_numbers(sizes.pop()), numbers

    def _parts(self) -> dict[str, Part]:
        """The parts that there are: ``train``, and ``val`` and ``test`` where the user divided the signals."""
        arrays, parts = self._arrays, dict[str, Part]()
        for part, spellings in NAMES.items():
            ends = [f"_{word}" for word in spellings] + ([""] if part == "train" else [])
            end = next((end for end in ends if f"x{end}" in arrays), None)
            if end is not None:
                parts[part] = self._part(end)
        if "train" not in parts:
            raise self._refusal(
                f"it has {', '.join(sorted(arrays)) or 'no arrays'}, expected x_train and y_train, or x and y"
            )
        sizes = {part.values.shape[1:] for part in parts.values()}
        if len(sizes) > 1:
            raise self._refusal(f"signals of its parts have the shapes {sorted(sizes)}; cut them to one")
        return parts

    def _part(self, end: str) -> Part:
        values = self._arrays[f"x{end}"]
        if values.ndim not in (2, 3, 4) or values.dtype.kind not in "fiub" or not values.size:
            raise self._refusal(
                f"x{end} is {values.dtype} {list(values.shape)}, expected numbers [n, channels, length], "
                f"[n, channels, height, width] or [n, length]"
            )
        count = len(values)
        labels: Array = np.full(count, UNKNOWN, dtype=np.int64)
        if self._config.labels:
            if f"y{end}" not in self._classes_and_labels[1]:
                raise self._refusal(f"y{end} is missing beside x{end}; add it, or set data.labels to false")
            labels = self._classes_and_labels[1][f"y{end}"]
        groups = np.asarray(self._arrays.get(f"groups{end}", np.arange(count))).reshape(-1)
        for name, array in (("y", labels), ("groups", groups)):
            if len(array) != count:
                raise self._refusal(f"{name}{end} has {len(array)} rows, x{end} has {count}; give one for each signal")
        return Part(values, labels, np.unique(groups, return_inverse=True)[1].astype(np.int64))

    def _refusal(self, what: str) -> DataError:
        return DataError(f"data {self._config.name}: {self._root}: {what}")


@register("arrays")
def arrays(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Arrays(ArraysConfig.from_section(section))
