"""Measures how far predicted latencies of whole random SubNets are from measured ones, and tries other predictors.

    OMP_NUM_THREADS=1 python benchmarks/latency_predictor.py                       # all networks, ncnn, one thread
    OMP_NUM_THREADS=1 python benchmarks/latency_predictor.py resnet50 --subnets 50 --runtime ncnn --cores 1

For each network, 50 random SubNets are converted and measured whole, in rounds. Between the rounds their operators are
measured in place, in other SubNets. A SubNet's latency is the mean of the rounds. The noise floor is the difference of
the last round to the first, which is at least a minute earlier. The alternatives get as much measuring time as the
operators took. ``--operators all`` measures the operators of the whole space, not only those of the 50 SubNets. The
work folder keeps all results, so that a run that was stopped goes on where it was. The operators and SubNets of all
networks are measured first, then the alternatives. The table is written to ``latency_predictor_RUNTIME.csv`` beside
this file. The columns about ignored fusion and unclaimed layers are for ncnn only, which can run operators unfused and
lists its layers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from predictors import alternatives, measuring, table
from predictors.subjects import SUBJECTS, Subject, subject
from rich.console import Console

from autotailor.profiling import fusion_rules, open_runtime
from autotailor.profiling.device import DeviceConfig


def judge(one: Subject, device: DeviceConfig, options: argparse.Namespace) -> table.Judged:
    """Measures what is still missing of one network and of the alternative predictors; judges all predictors."""
    fusion, net = fusion_rules(device), one.net
    used, space = one.operators(fusion), net.operators(fusion=fusion)
    operators = space if options.operators == "all" else used
    lut, minutes, rounds = measuring.interleaved(one, device, operators, options.seconds)
    naive = measuring.naive(one, device, used, minutes)
    training = measuring.training(one, device, minutes)
    missed = measuring.fusionless(one, device, options.seconds)
    unclaimed, layers = measuring.unclaimed(one, device)
    rounds = [found.set_index("subnet").loc[[s.id for s in one.subnets]] for found in rounds]
    measured = np.stack([found.anchors.to_numpy() for found in rounds])
    again = measured[-1] / measured[0] - 1
    anchor_ms = lut.latencies()[open_runtime(device).anchor().id]
    known = {key: latency / anchor_ms for key, latency in lut.latencies().items()}
    subnets = one.subnets
    ours = alternatives.look_up(net, fusion, known, subnets)
    predicted = {
        table.OURS: ours,
        table.FORECAST: alternatives.with_forecast(ours, measured.mean(axis=0), np.abs(again)),
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
        **table.floor(again),
        "raw_drift": float(np.median(rounds[-1].raw_ms / rounds[0].raw_ms) - 1),
        "unclaimed_layers": unclaimed,
        "layers": layers,
        "fusion_ignored": missed,
    }
    places = np.array([len(net.sequence(s, fusion)) for s in subnets], dtype=np.float64)
    return table.Judged(measured.mean(axis=0), again, predicted, places, facts)


def main() -> None:
    """Measures the chosen networks, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*SUBJECTS, []], help="default: all")
    parser.add_argument("--runtime", default="ncnn")
    parser.add_argument("--subnets", type=int, default=50)
    parser.add_argument("--operators", choices=("sampled", "all"), default="sampled")
    parser.add_argument("--minutes", type=float, default=0.75, help="of profiling; more where an operator needs it")
    parser.add_argument("--seconds", type=float, default=0.6, help="of measuring for each SubNet and round")
    parser.add_argument("--cores", type=int, nargs="*", default=[])
    parser.add_argument("--workdir", type=Path, default=Path("results/latency_predictor"))
    parser.add_argument("--csv", type=Path, help="default: latency_predictor_RUNTIME.csv here")
    parser.add_argument("--prepare", action="store_true", help="only compile and convert, measure nothing")
    options = parser.parse_args()
    options.csv = options.csv or Path(__file__).with_name(f"latency_predictor_{options.runtime}.csv")
    torch.set_num_threads(1)
    device = DeviceConfig(
        "host",
        runtime=options.runtime,
        cores=tuple(options.cores),
        min_minutes=0,  # operators are measured in parts, minutes apart
        max_minutes=options.minutes,
        precision_target=0.02,
    )
    judged: dict[str, table.Judged] = {}
    subjects = [subject(n, options.subnets, options.workdir, options.runtime) for n in options.networks or SUBJECTS]
    for one in subjects:
        one.networks(device)
    if options.prepare:
        return
    fusion = fusion_rules(device)
    for one in subjects:
        operators = one.net.operators(fusion=fusion) if options.operators == "all" else one.operators(fusion)
        measuring.interleaved(one, device, operators, options.seconds)
    for one in subjects:
        name = one.name
        judged[name] = judge(one, device, options)
        frame = table.rows(judged)
        frame.to_csv(options.csv, index=False)
        Console(width=200).print(table.render(frame[frame.network == name], f"{name}, {options.runtime}, one thread"))
    Console(width=200).print(table.render(pd.read_csv(options.csv), f"All networks, {options.runtime}, one thread"))


if __name__ == "__main__":
    main()
