"""``inspect --data PATH`` for signals: compares arrays or recordings with a network, and writes their data section."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from autotailor.agreement import AgreementError, mismatch
from autotailor.commands.inspect.own_data import line, named, no_rows, numbered, quoted
from autotailor.data.datasets.arrays import LAYOUTS, Arrays, ArraysConfig
from autotailor.data.datasets.series import Series, SeriesConfig, holds_recordings
from autotailor.data.labels import CLASSIFICATION, EMBEDDING, REGRESSION

if TYPE_CHECKING:
    from autotailor.data.preparation import Signal
    from autotailor.data.splits import DataSplits

ARCHIVE = ".npz"


@dataclass(frozen=True)
class OwnSignals:
    """Arrays of the user's signals, or recordings.

    Attributes:
        root: as the user named it.
        name: of the dataset.
        data: the arrays, with channels first, or the recordings.
        mean, std: those that the network was trained with; empty takes those of the training signals.
        layout: with which the signals fit the network.
        task: that the configuration names; "" where it is classification.
    """

    root: Path
    name: str
    data: Arrays
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: str = LAYOUTS[0]
    task: str = ""

    @property
    def kind(self) -> str:
        """Of the dataset."""
        return "series" if isinstance(self.data, Series) else "arrays"

    @property
    def splits(self) -> DataSplits:
        """The signals; windows of recordings have the network's length from ``for_network`` on."""
        return _loaded(self.data)

    @property
    def signal(self) -> Signal:
        """How a signal becomes an image."""
        return cast("Signal", self.splits.signal)

    @property
    def labels(self) -> bool:
        """Whether the signals have labels."""
        return self.splits.labelled

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the network's outputs; empty without labels."""
        return self.splits.classes

    def for_network(
        self, source: str, outputs: int, returned: Sequence[str], shapes: Sequence[Sequence[int]]
    ) -> OwnSignals:
        """The signals with the layout and the task of a network.

        Args:
            source: of the network.
            outputs: how many classes it knows; 0 where it returns something else.
            returned: names of the tensors that it returns.
            shapes: that of its input, ``[1, channels, height, width]``.

        Raises:
            AgreementError: the signals have another shape or other labels than the network takes.
        """
        data, shape = self.data, shapes[0]
        own = replace(self, data=data.of_length(shape[-1])) if isinstance(data, Series) else self
        file = own.signal.file
        turned = (file[-1], *file[:-1])
        images = {"first": own.signal.shape, "last": (turned[0], *([1] * (3 - len(file))), *turned[1:])}
        fits = [layout for layout in LAYOUTS if images[layout] == tuple(shape[1:])]
        if not fits:
            raise AgreementError(
                f"the network {source} takes {list(shape)}, the signals in {self.root} have the shape {list(file)}: "
                f"cut them to the network's length, or export the network for theirs"
            )
        if not outputs and self.task:
            raise AgreementError(no_rows(source, returned, self.task))
        if own.labels and outputs != len(own.classes) and self.task != EMBEDDING:
            raise AgreementError(mismatch(source, outputs, str(self.root), own.classes))
        return replace(own, layout=fits[0], task=self.task or ("" if outputs else "outputs"))

    def verify(self) -> None:
        """The signals were verified when they were read."""

    def summary(self, transparent: Sequence[str] = ()) -> list[str]:
        """Lines that describe the signals and the classes."""
        kind = "numbers" if self.task == REGRESSION else "classes"
        what = f"{len(self.classes)} {kind} ({', '.join(self.classes[:12])})" if self.labels else "without labels"
        return [f"Data {self.root}: {self._parts} signals, each {list(self.signal.file)} finite numbers; {what}."]

    @property
    def _parts(self) -> str:
        sizes = len(self.splits.train), len(self.splits.validation), len(self.splits.test)
        return ", ".join(f"{name} {size:,}" for name, size in zip(("train", "val", "test"), sizes, strict=True))

    def lines(self) -> list[str]:
        """The data section, as YAML with comments."""
        origin = "with which the network was trained; []: that of the training signals"
        return [
            *(numbered(self._title, self.classes) if self.labels else []),
            f"# {self._parts} signals.",
            "data:",
            line("name", quoted(self.name)),
            line("root", self.root),
            *([] if self.labels else [line("labels", False, "none: the original network teaches alone")]),
            *([line("task", self.task)] if self.task else []),
            *self._cut_lines(),
            line("mean", list(self.mean), f"of each channel, {origin}"),
            line("std", list(self.std)),
            line("shift", 0, "training signals are moved along their length by up to so many numbers to either side"),
            line("noise", 0.0, "standard deviation of what is added to training signals, in units of std"),
        ]

    @property
    def _title(self) -> str:
        if self.task == EMBEDDING:
            return "# The network's outputs are vectors; the signals' classes judge whose neighbours they are:"
        return "# The network's outputs are the labels in their order:"

    def _cut_lines(self) -> list[str]:
        """What makes signals of arrays or of recordings."""
        if not isinstance(self.data, Series):
            return [line("layout", self.layout, "of a signal's channels")]
        length = self.signal.file[-1]
        return [
            line("length", length, "numbers of a window, those that the network takes"),
            line("hop", length, "from the beginning of one window to that of the next"),
        ]


def is_signals(path: Path) -> bool:
    """Whether a path is an archive of arrays, a folder of them, or a folder of recordings."""
    path = path.expanduser()
    if path.suffix.lower() == ARCHIVE:
        return True
    with suppress(OSError):  # what reads pictures says why a folder cannot be listed
        return path.is_dir() and (any(path.glob("*.npy")) or holds_recordings(path))
    return False


def read_own_signals(
    path: Path, mean: Sequence[float] | None, std: Sequence[float] | None, task: str = ""
) -> OwnSignals:
    """The signals of arrays or recordings; those without labels have none. Recordings wait for a window's length.

    Raises:
        DataError: the arrays are no signals, or a signal holds numbers that are not finite.
    """
    name = named(path.with_suffix("") if path.suffix.lower() == ARCHIVE else path, "signals")
    is_arrays = path.suffix.lower() == ARCHIVE or any(path.expanduser().glob("*.npy"))

    if task == REGRESSION and not is_arrays:
        raise AgreementError(
            f"--data {path} holds recordings, and columns or a table have their numbers, which no option names: "
            "inspect the network alone, and write the section data as conf/data/series.yaml has it, with task, length, "
            "and targets or table"
        )

    def opened(labels: bool) -> Arrays:
        if is_arrays:
            return Arrays(ArraysConfig(name=name, root=str(path), labels=labels, task=task or CLASSIFICATION))
        return Series(SeriesConfig(name=name, root=str(path), labels=labels, task=task or CLASSIFICATION))

    data = opened(True)
    if not data.has_labels:
        data = opened(False)
    if is_arrays:
        _loaded(data)
    return OwnSignals(path, name, data, tuple(mean or ()), tuple(std or ()), task=task)


@cache
def _loaded(data: Arrays) -> DataSplits:
    """The splits of signals, which are read once."""
    return replace(data.load(), classes=data.classes() or ())
