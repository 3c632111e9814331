"""Compares the evaluation of many SubNets that share their prefixes with the evaluation of each by itself.

    OMP_NUM_THREADS=1 python benchmarks/prefix_sharing.py [--models resnet_digits mobilenet_digits] [--supernet FILE]

Three sets of SubNets are evaluated. ``singles``: the largest SubNet and each single modification of it, as for
sensitivities. ``random``: uniform over the space, with 90 to 100 % of a budget of multiply-accumulates. ``mutated``: as
AdaptiveNet's search makes its candidates; a tenth are such random SubNets, and each further one changes one variable of
an earlier one and stays near the budget. Both ways evaluate all SubNets of a set, on one thread. Their seconds are CPU
time of the process, so that other programs on the machine count little. ``saved`` is one minus their ratio, the median
over rounds. ``planned`` is the share of the counted work that plans save: without groups (``one_group``), with them,
and with less memory. All results are compared. Prints the table and writes ``prefix_sharing.csv`` beside this file.
Weights do not matter for the time; they are random without ``--supernet``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import autotailor
from autotailor import config, data
from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.config import MEMORY_MB, CalibrationConfig
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import BATCH, evaluate
from autotailor.accuracy.sharing.groups import groups
from autotailor.accuracy.sharing.plan import plan
from autotailor.accuracy.sharing.steps import Steps, steps_of
from autotailor.accuracy.sharing.tree import Branch, grow
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.data.excerpt import excerpt
from autotailor.data.splits import DataSplits
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcome

CONF = Path(__file__).parents[1] / "conf"
NEAR = 0.9
"""SubNets near a budget use at least this share of the budget."""
LESS = (4, 16, 64)
"""Memory limits in MiB for which the plan is made, beside the default."""
Found = dict[SubNet, Outcome]


def singles(net: SuperNet) -> list[SubNet]:
    """The largest SubNet and its single modifications."""
    base = net.largest()
    changed = (base.transform(Modification(v.name, choice)) for v in net.space for choice in v.choices)
    return list(dict.fromkeys([base, *changed]))


def near(net: SuperNet, count: int, first: int, random: np.random.Generator) -> list[SubNet]:
    """Different SubNets near the median budget: ``first`` random ones, the others mutations of earlier ones."""
    macs = net.macs()
    budget = float(np.median(macs.predict(np.stack([net.sample(random).to_array() for _ in range(1000)]))))
    found: dict[SubNet, None] = {}
    while len(found) < count:
        subnet = net.sample(random)
        if len(found) >= first:
            variable = net.space.variables[random.integers(len(net.space.variables))]
            parent = list(found)[random.integers(len(found))]
            subnet = parent.transform(
                Modification(variable.name, variable.choices[random.integers(len(variable.choices))])
            )
        if NEAR * budget <= macs.predict(subnet.to_array())[0] <= budget:
            found[subnet] = None
    return list(found)


def alone(net: SuperNet, subnets: Sequence[SubNet], splits: DataSplits, calibration: CalibrationConfig) -> Found:
    """Each SubNet by itself."""
    module, calibrator = net.module().eval(), Calibrator(splits, calibration)
    return {s: evaluate(module, s, splits.validation, calibrator.statistics(module, s)) for s in subnets}


def together(net: SuperNet, subnets: Sequence[SubNet], splits: DataSplits, calibration: CalibrationConfig) -> Found:
    """All SubNets by one evaluator."""
    return dict(Evaluator(net.module(), Calibrator(splits, calibration), splits.validation, workers=1).all(subnets))


def saved(
    net: SuperNet, subnets: Sequence[SubNet], splits: DataSplits, options: argparse.Namespace
) -> dict[str, float]:
    """Seconds of both ways, and the share that is saved; fails where a result differs."""
    seconds: dict[str, list[float]] = {"alone": [], "together": []}
    for turn in range(options.rounds):
        found = {}
        for way in (alone, together)[:: 1 if turn % 2 else -1]:
            start = time.process_time()
            found[way.__name__] = way(net, subnets, splits, options.calibration)
            seconds[way.__name__].append(time.process_time() - start)
        for subnet, outcome in found["alone"].items():
            assert outcome.packed() == found["together"][subnet].packed(), f"SubNet {subnet.id} differs"
    shares = 1 - np.array(seconds["together"]) / np.array(seconds["alone"])
    return {
        "alone_s": float(np.median(seconds["alone"])),
        "together_s": float(np.median(seconds["together"])),
        "saved": float(np.median(shares)),
        "saved_low": float(shares.min()),
        "saved_high": float(shares.max()),
    }


def planned(net: SuperNet, subnets: Sequence[SubNet]) -> dict[str, float]:
    """The share of work that plans save, for one group, for groups, and for less memory."""
    module = net.module()
    steps = [steps_of(net.elastic, module.prepare(subnet)) for subnet in subnets]
    whole = sum(each.work[-1] for each in steps)
    divided = groups(grow(steps), 1)
    columns = {"planned_one_group": 1 - _work(steps, grow(steps), MEMORY_MB) / whole}
    for memory in (MEMORY_MB, *LESS):
        parts = [[steps[i] for i in group] for group in divided]
        columns[f"planned_{memory}_mb"] = 1 - sum(_work(part, grow(part), memory) for part in parts) / whole
    return columns


def _work(steps: Sequence[Steps], tree: Branch, memory: int) -> float:
    return sum(
        steps[visit.subnets[0]].work[-1] - steps[visit.subnets[0]].work[visit.start]
        for visit in plan(tree, memory * 2**20, BATCH)
    )


def measure(options: argparse.Namespace) -> pd.DataFrame:
    """One row for each model and set of SubNets."""
    rows = []
    for name in options.models:
        section = config.compose(CONF, name, "host", ["recipe=default"])
        net = autotailor.compile(section["model"]["source"], section["model"]["space"], name=name)
        if options.supernet:
            net = autotailor.load(options.supernet)
        loaded = data.load({**section["data"], "seed": 0})
        splits = DataSplits(**{**vars(loaded), "validation": excerpt(loaded.validation, options.images)})
        random = np.random.default_rng(0)
        sets = {
            "singles": singles(net),
            "random": near(net, options.subnets, options.subnets, random),
            "mutated": near(net, options.subnets, options.subnets // 10, random),
        }
        for kind in options.sets:
            row = {"model": name, "set": kind, "subnets": len(sets[kind])} | planned(net, sets[kind])
            rows.append(row | saved(net, sets[kind], splits, options))
            show(pd.DataFrame(rows[-1:]))
    return pd.DataFrame(rows)


def show(frame: pd.DataFrame) -> None:
    """Prints the table."""
    plans = [column for column in frame.columns if column.startswith("planned")]
    table = Table("model", "set", "SubNets", "alone, CPU s", "together, CPU s", "saved", *plans)
    for row in frame.to_dict("records"):
        numbers = [f"{row[key]:.1f}" for key in ("alone_s", "together_s")]
        span = f"{row['saved']:.1%} ({row['saved_low']:.1%} to {row['saved_high']:.1%})"
        table.add_row(
            row["model"], row["set"], str(row["subnets"]), *numbers, span, *(f"{row[plan]:.1%}" for plan in plans)
        )
    Console(width=180).print(table)


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet_digits", "mobilenet_digits"])
    parser.add_argument("--sets", nargs="+", default=["singles", "random", "mutated"])
    parser.add_argument("--subnets", type=int, default=200, help="near the budget")
    parser.add_argument("--images", type=int, default=512, help="of the validation set")
    parser.add_argument("--calibration", type=int, default=256, help="images")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--supernet", type=Path, help="trained SuperNet of the one model that is named")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    options.calibration = CalibrationConfig(options.calibration, 128)
    with deterministic(1):
        frame = measure(options)
    show(frame)
    frame.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
