"""How far predicted latencies are from measured ones, for whole random SubNets, beside other predictors.

    OMP_NUM_THREADS=1 python benchmarks/latency_predictor.py                       # all networks, ncnn, one thread
    OMP_NUM_THREADS=1 python benchmarks/latency_predictor.py resnet50 --subnets 50 --runtime ncnn --cores 1

For each network: 50 random SubNets are converted and measured whole, then their operators in place, in other SubNets,
then the 50 SubNets again: the mean of both rounds is what counts, their difference is the noise floor. The alternatives
get as much measuring time as the operators took. ``--operators all`` measures the operators of the whole space, not
only those that the 50 SubNets hold. Everything is kept in the work folder, so that a run that is stopped goes on where
it was; the table is written to ``latency_predictor.csv`` beside this file.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from predictors import alternatives, measuring, table
from predictors.subjects import SUBJECTS, Subject, subject
from rich.console import Console

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import fusion_rules
from autotailor.profiling.device import DeviceConfig

APART_SECONDS = 60.0
"""Between the two rounds of whole SubNets."""


def judge(one: Subject, device: DeviceConfig, options: argparse.Namespace) -> table.Judged:
    """Measures one network."""
    fusion, net = fusion_rules(device), one.net
    used = dict.fromkeys(feature for s in one.subnets for feature in net.operators(s, fusion))
    space = net.operators(fusion=fusion)
    operators: tuple[OperatorFeature, ...] = space if options.operators == "all" else tuple(used)
    first = measuring.whole(one, device, options.seconds, 1)
    lut, minutes = measuring.table_of_operators(one, device, operators)
    naive = measuring.naive(one, device, tuple(used), minutes)
    training = measuring.training(one, device, minutes, options.seconds)
    missed = measuring.fusionless(one, device, options.seconds)
    time.sleep(max(0.0, first.measured_at.max() + APART_SECONDS - time.time()))
    second = measuring.whole(one, device, options.seconds, 2)
    unclaimed, layers = measuring.unclaimed(one, device)
    a, b = (round_.set_index("subnet").latency_ms[[s.id for s in one.subnets]].to_numpy() for round_ in (first, second))
    known = lut.latencies()
    subnets = one.subnets
    predicted = {
        table.OURS: alternatives.look_up(net, fusion, known, subnets),
        "naive LUT": alternatives.look_up(net, fusion, naive, subnets),
        "MACs regression": alternatives.macs_regression(net, training, subnets),
        "random forest over operators": alternatives.forest_over_operators(net, fusion, operators, known, subnets),
        "gradient boosting over SubNets": alternatives.boosting_over_encodings(net, training, subnets),
    }
    facts = {
        "profiling_minutes": minutes,
        "operators": len(operators),
        "space_operators": len(space),
        "subnets": len(subnets),
        **table.floor(b / a - 1),
        "unclaimed_layers": unclaimed,
        "layers": layers,
        "fusion_ignored": missed,
    }
    places = np.array([len(net.sequence(s, fusion)) for s in subnets], dtype=np.float64)
    return table.Judged((a + b) / 2, b / a - 1, predicted, places, facts)


def main() -> None:
    """Measures the networks that are asked for, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*SUBJECTS, []], help="default: all")
    parser.add_argument("--runtime", default="ncnn")
    parser.add_argument("--subnets", type=int, default=50)
    parser.add_argument("--operators", choices=("sampled", "all"), default="sampled")
    parser.add_argument("--minutes", type=float, default=1.0, help="of profiling for each network, at most about")
    parser.add_argument("--seconds", type=float, default=0.3, help="of measuring for each SubNet and round")
    parser.add_argument("--cores", type=int, nargs="*", default=[])
    parser.add_argument("--workdir", type=Path, default=Path("results/latency_predictor"))
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    parser.add_argument("--prepare", action="store_true", help="only compile and convert, measure nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = DeviceConfig(
        "host", runtime=options.runtime, cores=tuple(options.cores), max_minutes=options.minutes, precision_target=0.02
    )
    judged: dict[str, table.Judged] = {}
    for name in options.networks or SUBJECTS:
        one = subject(name, options.subnets, options.workdir, options.runtime)
        if options.prepare:
            one.networks(device)
            continue
        judged[name] = judge(one, device, options)
        frame = table.rows(judged)
        frame.to_csv(options.csv, index=False)
        Console(width=200).print(table.render(frame[frame.network == name], f"{name}, {options.runtime}, one thread"))
    if judged:
        Console(width=200).print(table.render(pd.read_csv(options.csv), f"All networks, {options.runtime}, one thread"))


if __name__ == "__main__":
    main()
