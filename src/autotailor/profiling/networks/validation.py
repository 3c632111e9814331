"""Compares the predicted with the measured latency of whole SubNets, which shows how good the LUT is."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from autotailor.ir.metrics.uncertainty import LatencyError
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, largest, sample_distinct, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.networks.timing import Measurement, mean_of_rounds, measure_rounds
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.table.lut import LUT
from autotailor.progress.bars import track

COLUMNS = (
    *("subnet", "predicted_ms", "measured_ms", "relative_error", "noise_floor"),
    *("raw_ms", "raw_error", "lut_error", "anchor_drift", "follows"),
    "share_noise",
)
NOT_MEASURED = pd.DataFrame(columns=list(COLUMNS))
"""The table of a run that has no device at hand: no rows."""


def validation_subnets(space: Space, count: int, seed: int) -> tuple[SubNet, ...]:
    """The largest SubNet, the smallest, and distinct random ones: ``count`` in all, fewer in a small space."""
    rng = random.Random(seed)
    return sample_distinct(space, count, rng, (largest(space), smallest(space)))


def validate(
    net: Any,
    metric: Metric,
    subnets: Sequence[SubNet],
    device: DeviceConfig,
    workdir: Path,
    *,
    lut: LUT | None = None,
    errors: LatencyError | None = None,
    rounds: int = 5,
    seconds_each: float = 0.3,
    kept: Path | None = None,
) -> pd.DataFrame:
    """Measures whole SubNets in rounds, interleaved, and compares them with what the LUT predicts.

    Args:
        net: the SuperNet; only the shapes of its weights matter here.
        metric: the SuperNet's latency in milliseconds.
        subnets: the SubNets to measure.
        device: the device to measure on.
        workdir: folder for converted networks; networks that are already there are used again.
        lut: the machine's drift since this LUT was measured is corrected, as far as SubNets follow the anchor.
        errors: standard errors of the predictions.
        rounds: how often each SubNet is measured, two or more; a single round can be off as a whole, relative to the
            anchor.
        seconds_each: seconds of measuring for each SubNet and round.
        kept: a folder that keeps each round, with which an interrupted measurement goes on; None: nothing is kept.

    Returns:
        One row for each SubNet: ``subnet`` (id), ``predicted_ms``, ``measured_ms`` (mean of the rounds),
        ``relative_error`` (predicted over measured, minus 1), ``noise_floor`` (difference of the last round to the
        first, over measured), ``raw_ms`` (measured, not drift corrected), ``raw_error`` (predicted over ``raw_ms``,
        minus 1), ``lut_error`` (standard error of the prediction, from those of the LUT's rows, over the prediction;
        empty without ``errors``), ``anchor_drift`` (how much slower the anchor was than in the LUT, relative),
        ``follows`` (the share of the anchor's slowdown that the SubNet's rounds show, 0 to 1; only so much of the
        drift is corrected), ``share_noise`` (standard deviation over the rounds of the logarithm of the SubNet's
        latency over that of the largest SubNet; empty where that is not among them).

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: fewer than two rounds, or the runtime cannot run a SubNet.
    """
    if rounds < 2:
        raise ProfilingError(f"validation: rounds is {rounds}, expected 2 or more: noise is the difference of rounds")
    measured = measure_subnets(
        net, subnets, device, workdir, lut=lut, rounds=rounds, seconds_each=seconds_each, kept=kept
    )
    return table(subnets, metric, measured, errors)


def measure_subnets(
    net: Any,
    subnets: Sequence[SubNet],
    device: DeviceConfig,
    workdir: Path,
    *,
    lut: LUT | None,
    rounds: int,
    seconds_each: float,
    kept: Path | None = None,
) -> list[list[Measurement]]:
    """Times whole SubNets in rounds, interleaved; see ``validate``.

    Returns:
        For each round a list with one measurement for each SubNet, whose ``key`` is the SubNet's id.
    """
    networks = {}
    for subnet in track(subnets, description="converting SubNets"):
        networks[subnet.id] = (converted(net, subnet, device, workdir), input_shape(net, subnet))
    return measure_rounds(networks, device, rounds, seconds_each=seconds_each, lut=lut, kept=kept)


def converted(net: Any, subnet: SubNet, device: DeviceConfig, workdir: Path) -> Path:
    """The folder that holds a SubNet in the runtime's own format; converts the SubNet where the folder is missing."""
    folder = workdir / subnet.id
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        net.export_onnx(subnet, folder / "model.onnx")
        convert(folder / "model.onnx", folder, device)
        (folder / "done").touch()
    return folder


def input_shape(net: Any, subnet: SubNet) -> tuple[int, ...]:
    """Input shape ``[1, 3, r, r]`` of a SubNet."""
    if "resolution" in subnet.space.positions:
        resolution = int(subnet["resolution"])
        return (*net.input_shape[:2], resolution, resolution)
    return tuple(net.input_shape)


def table(
    subnets: Sequence[SubNet],
    metric: Metric,
    rounds: Sequence[Sequence[Measurement]],
    errors: LatencyError | None = None,
) -> pd.DataFrame:
    """The rows of ``validation.csv``, from two rounds or more; ``errors`` are the standard errors of predictions."""
    indices = stack(subnets)
    predicted = metric.predict(indices)
    first, last = (np.array([m.latency_ms for m in measurements]) for measurements in (rounds[0], rounds[-1]))
    means = mean_of_rounds(rounds)
    measured, raw, drift, follows = (
        np.array([getattr(m, name) for m in means]) for name in ("latency_ms", "raw_ms", "anchor_drift", "follows")
    )
    logs = np.log([[m.latency_ms for m in measurements] for measurements in rounds])
    whole = [row for row, subnet in enumerate(subnets) if subnet == largest(subnet.space)]
    return pd.DataFrame(
        {
            "subnet": [subnet.id for subnet in subnets],
            "predicted_ms": predicted,
            "measured_ms": measured,
            "relative_error": predicted / measured - 1,
            "noise_floor": np.abs(last - first) / measured,
            "raw_ms": raw,
            "raw_error": predicted / raw - 1,
            "lut_error": np.nan if errors is None else errors.predict(indices) / predicted,
            "anchor_drift": drift,
            "follows": follows,
            "share_noise": np.std(logs - logs[:, whole], axis=0, ddof=1) if whole else np.nan,
        }
    )[list(COLUMNS)]


def convert(onnx_path: Path, directory: Path, device: DeviceConfig) -> None:
    """Converts an ONNX file into the files of the device's runtime, in single precision."""
    open_runtime(device).convert(onnx_path, directory)


def converted_file(onnx_path: Path, device: DeviceConfig, directory: Path) -> Path:
    """The ONNX file if the files of the device's runtime lie beside it; else a copy, converted in ``directory``."""
    runtime = open_runtime(device)
    if all((onnx_path.parent / name).exists() for name in runtime.files):
        return onnx_path
    directory.mkdir(parents=True, exist_ok=True)
    copy = Path(shutil.copyfile(onnx_path, directory / onnx_path.name))
    runtime.convert(copy, directory)
    return copy
