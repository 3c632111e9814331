"""Finds the statistic of a network's runs that repeats best between processes, while others use the machine, too.

    OMP_NUM_THREADS=1 python benchmarks/repetition.py --cores 1

In each of several processes, SubNets of two networks and the anchor are visited in turn, as the runner visits them. For
each statistic the table has the relative standard deviation over the processes: of the latencies, and of the latencies
in units of the same process's anchor. Prints the table and writes ``repetition.csv`` beside this file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from predictors.measuring import in_place
from predictors.subjects import subject
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import trim_mean

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.measuring.remaining import BLOCKS
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.runtimes.ncnn import runner as ncnn_runner
from autotailor.profiling.runtimes.runner import loop as runner_loop

Times = npt.NDArray[np.float64]
NETWORKS = {"resnet_digits": 8, "mobilenetv2": 2}
"""Number of SubNets that are measured of each network."""


def block_medians(runs: Times) -> Times:
    """Medians of blocks of consecutive runs."""
    return np.array([np.median(part) for part in np.array_split(runs, BLOCKS)])


STATISTICS: dict[str, Callable[[Times], float]] = {
    "mean of blocks without the slowest runs (ours)": lambda runs: float(
        np.mean(runner_loop.block_means(runs.tolist(), BLOCKS))
    ),
    "mean": lambda runs: float(runs.mean()),
    "median": lambda runs: float(np.median(runs)),
    "interquartile mean of block medians": lambda runs: float(trim_mean(block_medians(runs), 0.25)),
    "25th percentile": lambda runs: float(np.percentile(runs, 25)),
    "10th percentile": lambda runs: float(np.percentile(runs, 10)),
    "minimum": lambda runs: float(runs.min()),
}


def measure(seconds: float, cores: Sequence[int], workdir: Path) -> list[Times]:
    """Nanoseconds of each timed run of the anchor and of each SubNet."""
    device = DeviceConfig("host", runtime="ncnn", cores=tuple(cores))
    subjects = [subject(name, count, workdir, "ncnn") for name, count in NETWORKS.items()]
    with Session(device) as session:
        subnets = [in_place(one, session, subnet) for one in subjects for subnet in one.subnets]
        settings = session.runtime.settings()
        if cores:
            os.sched_setaffinity(0, cores)
        ready = [
            runner_loop.Timed(program.key, ncnn_runner.load(program.to_manifest(), settings), {}, has_steps=False)
            for program in (session.anchor, *subnets)
        ]
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for timed in ready:
                runner_loop.visit(timed, 0, settings, np.ones(1, dtype=np.float32))
    return [np.array(timed.times[0], dtype=np.float64) for timed in ready]


def spread(values: Times) -> float:
    """Relative standard deviation over the processes (rows); root mean square over the networks (columns)."""
    return float(np.sqrt((values / values.mean(axis=0)).var(axis=0, ddof=1).mean()))


def rows(found: Sequence[Sequence[Times]]) -> pd.DataFrame:
    """A row for each statistic; ``found`` holds, for each process, the runs of the anchor and of the SubNets."""
    table = []
    for statistic, function in STATISTICS.items():
        latencies = np.array([[function(runs) for runs in process] for process in found])
        row: dict[str, str | float] = {"statistic": statistic, "anchor": spread(latencies[:, :1])}
        begin = 1
        for name, count in NETWORKS.items():
            own = latencies[:, begin : begin + count]
            begin += count
            row |= {name: spread(own), f"{name} / anchor": spread(own / latencies[:, :1])}
        table.append(row)
    return pd.DataFrame(table)


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=12.0, help="of measuring in each process")
    parser.add_argument("--cores", type=int, nargs="*", default=[])
    parser.add_argument("--workdir", type=Path, default=Path("results/latency_predictor"))
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    for name, count in NETWORKS.items():
        subject(name, count, options.workdir, "ncnn")
    one = partial(measure, options.seconds, options.cores, options.workdir)
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=fresh, max_tasks_per_child=1) as pool:
        futures = [pool.submit(one) for _ in range(options.processes)]
        found = [future.result() for future in track(futures, "processes")]
    frame = rows(found)
    frame.to_csv(options.csv, index=False)
    shown = Table(*frame.columns, title=f"Standard deviation over {options.processes} processes, %")
    for row in frame.itertuples(index=False):
        shown.add_row(row[0], *(f"{100 * value:.1f}" for value in row[1:]))
    Console(width=160).print(shown)


if __name__ == "__main__":
    main()
