"""Measures how long profiling a network's full space takes from nothing, and how precise the LUT is afterwards.

    OMP_NUM_THREADS=1 python benchmarks/profiling.py resnet50 --runtime ncnn --cores 1 --minutes 19

The network is compiled beforehand. The time begins with an empty LUT store, and includes the enumeration of the
distinct operators. Prints the table and writes ``profiling.csv`` beside this file. The paper needs 20 minutes for
ResNet50's convolutions alone (section 6.4).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from predictors.subjects import SUBJECTS, subject
from rich.console import Console
from rich.table import Table

from autotailor.profiling import LUT, fusion_rules, profile
from autotailor.profiling.device import DeviceConfig

HEADS = ("network", "runtime", "operators", "minutes", "within", "of the latency", "median error", "95th percentile")


def measure(name: str, device: DeviceConfig, workdir: Path) -> dict[str, Any]:
    """Profiles one network's space; returns a row of the table."""
    net = subject(name, 1, workdir, device.runtime).net
    with tempfile.TemporaryDirectory() as store:
        begin = time.monotonic()
        operators = net.operators(fusion=fusion_rules(device))
        lut = profile(operators, device, Path(store), net=net)
        minutes = (time.monotonic() - begin) / 60
    return {
        "network": name,
        "runtime": device.runtime,
        "operators": len(operators),
        "minutes": minutes,
        "target": device.precision_target,
        **precision({feature.id for feature in operators}, lut, device.precision_target),
    }


def precision(operators: set[str], lut: LUT, target: float) -> dict[str, float]:
    """Share of operators within the target, by number and by latency, and quantiles of the relative standard error."""
    rows = [row for row in lut if row.feature.id in operators]
    latency = np.array([row.latency_ms for row in rows])
    error = np.array([row.standard_error for row in rows]) / latency
    return {
        "within_target": float(np.mean(error <= target)),
        "latency_within_target": float(latency[error <= target].sum() / latency.sum()),
        "median_error": float(np.median(error)),
        "error_95": float(np.quantile(error, 0.95)),
    }


def render(frame: pd.DataFrame) -> Table:
    """The rows as a table for a person."""
    table = Table(*HEADS, title="Full spaces profiled from nothing; standard errors of the operators")
    for row in frame.itertuples(index=False):
        shares = (row.within_target, row.latency_within_target, row.median_error, row.error_95)
        cells = (row.network, row.runtime, f"{row.operators:,}", f"{row.minutes:.1f}")
        table.add_row(*cells, *(f"{share:.2%}" for share in shares))
    return table


def main() -> None:
    """Profiles the chosen networks, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*SUBJECTS, []], default=["resnet50"])
    parser.add_argument("--runtime", default="ncnn")
    parser.add_argument("--cores", type=int, nargs="*", default=[])
    parser.add_argument("--minutes", type=float, default=19.0, help="of measuring at most")
    parser.add_argument("--target", type=float, default=0.02, help="relative standard error")
    parser.add_argument("--workdir", type=Path, default=Path("results/latency_predictor"), help="for compiled networks")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = DeviceConfig(
        "host",
        runtime=options.runtime,
        cores=tuple(options.cores),
        max_minutes=options.minutes,
        precision_target=options.target,
    )
    rows = []
    for name in options.networks:
        rows.append(measure(name, device, options.workdir))
        pd.DataFrame(rows).to_csv(options.csv, index=False)
    Console(width=160).print(render(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
