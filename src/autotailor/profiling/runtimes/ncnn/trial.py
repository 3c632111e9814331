"""Tries networks out in ncnn, in a separate process, because a network that ncnn cannot run may crash the process.

``run_trials`` starts this file as a program. The program reads a list of networks. For each network the program prints
the shapes of all blobs, or why there are none, and writes the values of the wanted blobs into files. ``run_images``
starts the program with one network and images, for which the program writes the network's outputs into a file.
"""

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

FAILURE = "autotailor: "  # begins the line that says why there are no outputs; ncnn may print other lines


@dataclass(frozen=True)
class TrialNet:
    """A network to try.

    Attributes:
        param: the network's text.
        bin_path: the file of its weights; None for zero weights.
        inputs: shape without the batch, or file of values (.npy), of each of the blobs in0, in1, ...
        values: blobs whose values are wanted.
        folder: folder for the values of these blobs, ``BLOB.npy``.
    """

    param: str
    bin_path: str | None
    inputs: tuple[tuple[int, ...] | str, ...]
    values: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True)
class Trial:
    """The outcome of trying a network.

    Attributes:
        shapes: shape without the batch of each blob that ncnn computed.
        failure: why ncnn cannot load or run the network; empty where it can.
    """

    shapes: dict[str, tuple[int, ...]]
    failure: str = ""


def run_trials(nets: Sequence[TrialNet]) -> list[Trial]:
    """Tries networks one after the other. After a network that crashes the process, a new process tries the rest.

    Raises:
        StoppedError: the process was ended from outside.
    """
    from autotailor.profiling.runtimes.stopped import check_stopped  # not in the process that tries

    trials: list[Trial] = []
    while len(trials) < len(nets):
        done = _run([asdict(net) for net in nets[len(trials) :]])
        for line in done.stdout.splitlines():
            if line.startswith('{"shapes"'):  # ncnn may print other lines
                answer = json.loads(line)
                shapes = {blob: tuple(shape) for blob, shape in answer["shapes"].items()}
                trials.append(Trial(shapes, answer["failure"]))
        if len(trials) < len(nets):
            check_stopped("a process that tries ncnn's layers", done.returncode)
            trials.append(Trial({}, f"ncnn ends its process (exit code {done.returncode})"))
    return trials


def run_images(
    param: Path, weights: Path, images: np.ndarray[Any, Any], settings: dict[str, Any]
) -> tuple[tuple[np.ndarray[Any, np.dtype[np.float32]], ...], str]:
    """The outputs for images ``[n, 3, r, r]``, each as flat rows ``[n, size]``, or none and why there are none.

    Raises:
        StoppedError: the process was ended from outside.
    """
    from autotailor.profiling.runtimes.stopped import check_stopped

    with tempfile.TemporaryDirectory(prefix="autotailor.ncnn.") as folder:
        source, target = Path(folder) / "images.npy", Path(folder) / "outputs.npz"
        np.save(source, np.ascontiguousarray(images, dtype=np.float32))
        files = dict(
            zip(("param", "weights", "images", "outputs"), map(str, (param, weights, source, target)), strict=True)
        )
        done = _run(files | {"settings": settings})
        check_stopped("a process that runs ncnn", done.returncode)
        if target.exists():
            with np.load(target) as loaded:
                return tuple(loaded[name] for name in loaded.files), ""
        said = [line for line in done.stdout.splitlines() if line.startswith(FAILURE)]
        crashed = f"ncnn ends its process (exit code {done.returncode})"
        return (), said[-1].removeprefix(FAILURE) if said else crashed


def _run(order: object) -> subprocess.CompletedProcess[str]:
    """Starts this file with an order, and waits for its end."""
    command, text = [sys.executable, "-P", __file__], json.dumps(order)
    return subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)


def _answer(order: dict[str, Any]) -> str:
    """Writes the outputs for an order's images; returns why there are none, or an empty text."""
    import ncnn

    from autotailor.profiling.runtimes.ncnn import runner

    net = ncnn.Net()
    runner.configure(net, order["settings"])
    if net.load_param(order["param"]) != 0 or net.load_model(order["weights"]) != 0:
        return "ncnn cannot load it"
    blobs = {blob.name for blob in net.blobs()}
    names = list(itertools.takewhile(blobs.__contains__, map("out{}".format, itertools.count())))
    rows: list[list[np.ndarray[Any, np.dtype[np.float32]]]] = []
    for image in np.load(order["images"]):
        extractor = net.create_extractor()
        extractor.input("in0", runner.to_mat(image))
        results = [extractor.extract(name) for name in names]
        if not results or any(code != 0 for code, _ in results):
            return f"ncnn cannot run it on an image of shape {list(image.shape)}"
        rows.append([np.array(result, dtype=np.float32).reshape(-1) for _, result in results])
    np.savez(order["outputs"], *(np.stack(each) for each in zip(*rows, strict=True)))
    return ""


def _array(given: Any, seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """An input's values: from a file, or random values of a shape."""
    if isinstance(given, str):
        return np.ascontiguousarray(np.load(given), dtype=np.float32)
    values: np.ndarray[Any, np.dtype[np.float32]] = np.random.default_rng(seed).random(given, dtype=np.float32)
    return values


def _try(net: dict[str, Any]) -> tuple[dict[str, tuple[int, ...]], str]:
    """Shapes of all blobs, and why ncnn failed (empty where it did not)."""
    import ncnn

    loaded = ncnn.Net()
    option = loaded.opt
    option.lightmode = False  # keeps every blob for extraction
    option.num_threads = 1
    loaded.opt = option
    if loaded.load_param_mem(net["param"]) != 0:
        return {}, "ncnn has no such layer, or refuses its parameters"
    if loaded.load_model(net["bin_path"] or ncnn.DataReaderFromEmpty()) != 0:
        return {}, "ncnn cannot load its weights"
    extractor = loaded.create_extractor()
    for i, given in enumerate(net["inputs"]):
        values = _array(given, i)  # the array must live until the copy is made
        extractor.input(f"in{i}", ncnn.Mat(values).clone())
    shapes: dict[str, tuple[int, ...]] = {}
    for blob in loaded.blobs():
        code, mat = extractor.extract(blob.name)
        if code != 0 or mat.empty():
            return shapes, f"ncnn cannot compute blob {blob.name}"
        shapes[blob.name] = (mat.c, mat.d, mat.h, mat.w) if mat.dims == 4 else (mat.c, mat.h, mat.w)[3 - mat.dims :]
        if blob.name in net["values"]:
            np.save(Path(net["folder"]) / f"{blob.name}.npy", np.array(mat))
    return shapes, ""


def main() -> None:
    """Reads the networks, and prints one line for each; or reads one network whose outputs are wanted."""
    order = json.load(sys.stdin)
    if isinstance(order, dict):
        if failure := _answer(order):
            print(f"{FAILURE}{failure}", flush=True)
        return
    for net in order:
        shapes, failure = _try(net)
        print(json.dumps({"shapes": shapes, "failure": failure}), flush=True)


if __name__ == "__main__":
    main()
