"""The files of a network with exits: one ONNX file with all outputs, a chain of segments, and the runtime's own file.

ONNX Runtime does not stop inside a session, so that a chain of files takes its place. ncnn does: one extractor is asked
for ``out0``, ``out1`` ... in this order, and goes on from what it has computed. A blob that several layers read must
come from a Split; otherwise ncnn gives it free after the first answer, and the second one is empty without an error.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import torch

from autotailor.exits.answers import ExitError
from autotailor.exits.costs import WithExits
from autotailor.exits.heads import named, segments
from autotailor.export.verification import Array, Arrays, arrays, as_arrays, relative_error, run_onnx
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.graph import Graph
from autotailor.profiling.runtimes import Runtime

SCHEMA = 1
DESCRIPTION, ALL, SEGMENT = "exits.json", "model.onnx", "segment_{}.onnx"
GUARANTEED, ASKED = "guaranteed", "asked"
"""Names of thresholds beside those of a run's budgets: the guaranteed ones, and those of ``autotailor export``."""


def write_files(
    network: WithExits, own: tuple[str, ...], folder: Path, images: Array, runtime: Runtime | None, tolerance: float
) -> dict[str, float]:
    """Writes all files, and compares each with the network in PyTorch.

    Args:
        network: with its exits.
        own: names of the input and the output of the network's own file.
        folder: of the files; made if missing.
        images: that are compared.
        runtime: that goes on from an exit inside a file, which it writes; None: the chain alone.
        tolerance: largest error, relative to the largest number of an output.

    Returns:
        The largest error of each kind of file, by name.

    Raises:
        ExitError: a file answers otherwise, or ncnn's has a blob that several layers read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    graph = network.graph
    names = (own[0], *(named(number) for number in range(len(network.places))), own[1])
    onnx.save(to_onnx(graph, names=names), str(folder / ALL))
    for number, segment in enumerate(segments(graph, network.places), 1):
        onnx.save(to_onnx(segment, names=_segment_names(segment, own, number)), str(folder / SEGMENT.format(number)))
    with torch.no_grad():
        reference = arrays(as_arrays(GraphModule(graph).eval()(torch.from_numpy(images))))
    answers = {
        ALL: arrays(run_onnx(folder / ALL)(images)),
        "segments": run_chain(folder, images),
    }
    if runtime is not None:
        runtime.convert(folder / ALL, folder)
        if runtime.name == "ncnn":
            check_splits((folder / runtime.files[0]).read_text(encoding="utf-8"))
        answers[runtime.name] = arrays(runtime.run(folder, images))
    errors = {name: relative_error(each, reference) for name, each in answers.items()}
    if wrong := {name: error for name, error in errors.items() if not error <= tolerance}:
        raise ExitError(
            f"{folder}: exits in {', '.join(f'{name} ({error:.1e})' for name, error in wrong.items())} differ from "
            f"those in PyTorch by more than the relative error of {tolerance:.0e} that is allowed"
        )
    return errors


def _segment_names(segment: Graph, own: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Names of a segment's input and outputs: what it hands on first, behind it its answer."""
    first = own[0] if number == 1 else segment.input
    return (first, own[1]) if len(segment.outputs) == 1 else (first, *segment.outputs)


def run_chain(folder: Path, images: Array) -> tuple[Array, ...]:
    """The answers of all exits, from the chain of segments, none of which stops."""
    answers, handed = [], images
    for path in segment_files(folder):
        outputs: Arrays = run_onnx(path)(handed)
        handed, answer = outputs if isinstance(outputs, tuple) else (handed, outputs)
        answers.append(answer)
    return tuple(answers)


def segment_files(folder: Path) -> list[Path]:
    """The segments of a network, in their order."""
    return sorted(folder.glob(SEGMENT.format("*")), key=lambda path: int(path.stem.rpartition("_")[2]))


def check_splits(param: str) -> None:
    """Raises ExitError where several layers of a ``.param`` read one blob."""
    reads = Counter[str]()
    for line in param.splitlines()[2:]:
        _, _, inputs, _, *words = line.split()
        reads.update(words[: int(inputs)])
    if shared := sorted(blob for blob, count in reads.items() if count > 1):
        raise ExitError(
            f"ncnn: several layers read {', '.join(shared)} without a Split, so that a second answer is empty"
        )


def write_description(folder: Path, content: dict[str, Any]) -> None:
    """Writes ``exits.json``: all that is needed to run the files."""
    text = json.dumps({"schema_version": SCHEMA, **content}, indent=2)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
