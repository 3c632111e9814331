"""Runs a network with exits picture by picture: it stops where an exit is sure, or at a deadline.

``Chain`` runs the chain of ONNX segments in ONNX Runtime. Where ncnn's files lie in the folder, ``Chain(..., "ncnn")``
asks one extractor for one exit after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import read_json
from autotailor.exits.answers import CONFIDENCES, LAST, ExitError
from autotailor.exits.files import ASKED, DESCRIPTION, GUARANTEED, segment_files
from autotailor.export.verification import onnx_session
from autotailor.profiling.runtimes.ncnn.runtime import FP16_OPTIONS, FP32_OPTIONS

Image = npt.NDArray[np.float32]
RUNTIMES = ("onnxruntime", "ncnn")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a network with exits answers to a picture.

    Attributes:
        label: index of the largest output.
        name: of the class, where the classes are known.
        exit: that answered: the stage or block that it follows, or ``last``.
        confidence: of the exit.
        outputs: its numbers, ``[classes]``.
        in_time: whether the answer came before the deadline; True without one.
    """

    label: int
    name: str
    exit: str
    confidence: float
    outputs: Image
    in_time: bool


class Chain:
    """A network with exits, as the rule ``exits`` writes it.

    Args:
        folder: ``results/MODEL/DEVICE/exits/NAME``.
        runtime: ``onnxruntime`` or ``ncnn``.
        thresholds: exit to the confidence at which a picture leaves, None for an exit that is left out; or the name of
            a budget of ``exits.json``, such as ``60%``, ``guaranteed`` or ``asked``; by default ``asked``, which
            ``autotailor export --expected`` writes, else ``guaranteed``.

    Raises:
        ExitError: the folder lacks files, or there are no such thresholds.
    """

    def __init__(
        self,
        folder: str | Path,
        runtime: str = RUNTIMES[0],
        thresholds: Mapping[str, float | None] | str = "",
    ) -> None:
        self.folder = Path(folder)
        if not (self.folder / DESCRIPTION).is_file():
            raise ExitError(f"{folder}: no {DESCRIPTION}; name a folder that the rule exits has written, exits/NAME")
        if runtime not in RUNTIMES:
            raise ExitError(f"exits run in {' or '.join(RUNTIMES)}, not in {runtime!r}")
        self.description = read_json(self.folder / DESCRIPTION)
        self._thresholds = [self._chosen(thresholds).get(name) for name in self.description["exits"]]
        self._took: dict[int, float] = {}
        self._answers = _segments(self.folder) if runtime == RUNTIMES[0] else _extracts(self.folder)

    def _chosen(self, thresholds: Mapping[str, float | None] | str) -> Mapping[str, float | None]:
        if not isinstance(thresholds, str):
            if unknown := sorted(set(thresholds) - set(self.description["exits"])):
                raise ExitError(
                    f"{self.folder}: there is no exit {unknown[0]!r}; there are {', '.join(self.description['exits'])}"
                )
            return thresholds
        budgets = dict(self.description["budgets"])
        if self.description["guaranteed"]:
            budgets[GUARANTEED] = self.description["guaranteed"]
        name = thresholds or (ASKED if ASKED in budgets else GUARANTEED)
        name = next((each for each in budgets if each.replace(" ", "") == name.replace(" ", "")), name)
        if name not in budgets:
            raise ExitError(
                f"{self.folder}: there are no thresholds for {name!r}, but for {', '.join(budgets) or 'nothing'}; name "
                "one, or an export that was chosen for this budget (exits.json of the run), or give a threshold for "
                "each exit"
            )
        chosen: Mapping[str, float | None] = budgets[name]["thresholds"]
        return chosen

    def __call__(self, image: Image, deadline: float | None = None) -> Answer:
        """The answer to one picture.

        Args:
            image: normalised as ``subnet.json`` of the export says, ``[3, height, width]``.
            deadline: seconds from now, at which the last exit that is done answers. The first exit is always waited
                for, and no segment is interrupted: none begins that would not end in time, by the seconds that it last
                took.
        """
        begun, done = time.perf_counter(), None
        names = [*self.description["exits"], LAST]
        answers = self._answers(np.ascontiguousarray(image[None], dtype=np.float32))
        for number, (name, threshold) in enumerate(zip(names, [*self._thresholds, 0.0], strict=True)):
            is_last = number == len(names) - 1
            if done is not None and deadline is not None and self._would_miss(number, begun + deadline):
                break
            started = time.perf_counter()
            outputs = next(answers)
            self._took[number] = time.perf_counter() - started
            done = (name, outputs)
            if not is_last and threshold is not None and self._sure(outputs, name) >= threshold:
                break
        assert done is not None
        name, outputs = done
        label, classes = int(outputs.argmax()), self.description["classes"]
        late = deadline is not None and time.perf_counter() - begun > deadline
        class_name = classes[label] if label < len(classes) else ""
        return Answer(label, class_name, name, self._sure(outputs, name), outputs, not late)

    def _would_miss(self, number: int, until: float) -> bool:
        return time.perf_counter() + self._took.get(number, 0.0) > until

    def _sure(self, outputs: Image, name: str) -> float:
        if name != LAST or not self.description["probabilities"]:
            outputs = np.exp(outputs - outputs.max())
        shares = np.sort(outputs / outputs.sum())
        largest = float(shares[-1])
        return largest if self.description["confidence"] == CONFIDENCES[0] else largest - float(shares[-2])


def _segments(folder: Path) -> Callable[[Image], Iterator[Image]]:
    """The answers of a chain of ONNX files, each computed when it is asked for."""
    sessions = [onnx_session(path) for path in segment_files(folder)]

    def run(image: Image) -> Iterator[Image]:
        handed: Any = image
        for session in sessions:
            outputs: Sequence[Any] = session.run(None, {session.get_inputs()[0].name: handed})
            handed = outputs[0]
            yield outputs[-1].ravel()

    return run


def _extracts(folder: Path) -> Callable[[Image], Iterator[Image]]:
    """The answers of one ncnn file, each computed when one extractor is asked for it."""
    import ncnn

    net, option = ncnn.Net(), ncnn.Option()
    option.num_threads = 1
    for name in (*FP16_OPTIONS, *FP32_OPTIONS):  # the numbers of the export, which is compared in single precision
        setattr(option, name, False)
    net.opt = option
    param, weights = (folder / f"model.ncnn.{ending}" for ending in ("param", "bin"))
    if not param.is_file() or net.load_param(str(param)) != 0 or net.load_model(str(weights)) != 0:
        raise ExitError(f"{folder}: no files that ncnn can load; run the rule exits on a device whose runtime is ncnn")
    names = [blob.name for blob in net.blobs()]

    def run(image: Image) -> Iterator[Image]:
        extractor = net.create_extractor()
        extractor.input("in0", ncnn.Mat(image[0]).clone())
        for number in range(sum(f"out{count}" in names for count in range(len(names)))):
            code, answer = extractor.extract(f"out{number}")
            if code != 0 or answer.empty():
                raise ExitError(f"{folder}: ncnn has no answer at out{number}")
            yield np.array(answer, dtype=np.float32).ravel()

    return run
