"""Measures the search on the paper's spaces: predictions a second, the exact front, and SubNets under constraints.

    OMP_NUM_THREADS=1 python benchmarks/search.py                 # ResNet50, MobileNetV2, ConvNeXt-Tiny
    OMP_NUM_THREADS=1 python benchmarks/search.py mobilenetv2 --csv search.csv

Latencies are synthetic: 0.02 ms and a tenth of a microsecond per thousand MACs for each operator, with 5 % of noise.
Accuracy has a random drop for each single modification, and pair terms of a tenth of that size between the resolution
and every variable. A fleet is three such devices, each with budgets on latency, energy, peak memory and weights at
once; the budgets of one set are the same share of the largest SubNet's values, from 35 to 95 %, each with 5 % of noise.
The front of three metrics (latency, peak memory, accuracy) is that of the SubNets that lose 5 points at most. All
numbers are CPU seconds of one process on one core. A solution has a gap of 0 where the search proved it in time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import autotailor
from autotailor import config, search
from autotailor.compiler.sources.network import create_network
from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.metrics.sums import operator_macs
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import canonical
from autotailor.ir.space.subnet import largest as largest_subnet
from autotailor.ir.space.variable import Space
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION

CONF = Path(__file__).parents[1] / "conf"
NETWORKS = ("resnet50", "mobilenetv2", "convnext_tiny")
PREDICTED = 200_000
DEVICES, SETS = 3, 40
LOSS = 5.0


def compiled(name: str) -> autotailor.SuperNet:
    """A network with its space of ``conf/model`` and random weights."""
    model = config.compose(CONF, name, "host")["model"]
    network = create_network(model["source"], pretrained=False)
    return autotailor.compile(network, model["space"], name=name, resolution=model["resolution"])


def latency(net: autotailor.SuperNet, rng: np.random.Generator) -> Metric:
    """A synthetic latency."""
    operators = net.operators(fusion=NCNN_FUSION)
    table = {f.id: (operator_macs(f) / 10 + 0.02) * float(np.exp(rng.normal(0, 0.05))) for f in operators}
    return net.latency(table, NCNN_FUSION)


def accuracy(space: Space, rng: np.random.Generator) -> Metric:
    """A synthetic accuracy with pair terms."""
    terms = []
    for variable in space:
        distance = np.abs(np.arange(len(variable.choices)) - variable.default) ** 1.5
        drop = -distance * rng.exponential(0.3)
        terms.append(Term((variable.name,), drop, variable.gate, variable.name))
        if variable.name != "resolution":
            sizes = len(space["resolution"].choices), len(variable.choices)
            pairs = rng.normal(0, 0.03, sizes) * (distance > 0)
            terms.append(Term(("resolution", variable.name), pairs, variable.gate, f"resolution, {variable.name}"))
    return Metric("accuracy", "%", space, tuple(terms), 80.0)


def noisy(metric: Metric, share: float, rng: np.random.Generator) -> Metric:
    """The metric with every entry of every table multiplied by about 1, as another device would have it."""
    terms = (replace(t, table=t.table * np.exp(rng.normal(0, share, np.shape(t.table)))) for t in metric.terms)
    return replace(metric, terms=tuple(terms))


def fleet(latency: Metric, memory: PeakMemory, weights: Metric, rng: np.random.Generator) -> list[search.Constraint]:
    """Four constraints on each of some devices."""
    found = []
    for device in range(DEVICES):
        metrics = {
            "latency": noisy(latency, 0.1, rng),
            "energy": noisy(latency, 0.2, rng),
            "memory": replace(memory, resident=noisy(memory.resident, 0.05, rng)),
            "weights": noisy(weights, 0.05, rng),
        }
        found.extend(search.Constraint(metric, f"{name}@{device}") for name, metric in metrics.items())
    return found


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of some work, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure(name: str, limit: float) -> dict[str, Any]:
    """One row of the table."""
    net, rng = compiled(name), np.random.default_rng(0)
    metrics = latency(net, rng), accuracy(net.space, rng), net.peak_memory(NCNN_FUSION)
    drawn = np.stack([rng.integers(0, len(v.choices), PREDICTED) for v in net.space], axis=1)
    rows = canonical(net.space, drawn)
    row: dict[str, Any] = {"network": name}
    for metric in metrics:
        metric.predict(rows[:1])
        row[f"{metric.name}_per_s"] = round(PREDICTED / seconds(lambda m=metric: m.predict(rows))[0])
    objectives = search.Objectives(metrics[1], metrics[0])
    row["front_s"], exact = seconds(lambda: search.exact_front(objectives))
    row["front_subnets"], row["front_slack_ms"] = len(exact.front), exact.slack
    constraints = [search.Constraint(m) for m in (metrics[0], metrics[2], net.parameters())]
    budgets = [{c.key: f"{share}%" for c in constraints} for share in (75, 60, 45)]
    row["solve_s"], found = seconds(lambda: search.solve(metrics[1], constraints, budgets, seconds=limit))
    row["solved"], row["largest_gap"] = len(found), max(solution.gap for solution in found)
    row |= measure_front_of_three(metrics[1], search.Constraint(metrics[0]), search.Constraint(metrics[2]))
    return row | measure_fleet(metrics[1], fleet(metrics[0], metrics[2], net.parameters(), rng), limit, rng)


def measure_front_of_three(objective: Metric, *axes: search.Constraint) -> dict[str, Any]:
    """The front of accuracy, latency and peak memory: CPU seconds, SubNets, and the largest gaps in points."""
    whole = float(objective.predict(largest_subnet(objective.space).to_array())[0])
    negated = tuple(replace(term, table=-term.table) for term in objective.terms)
    loss = Metric("loss", "%", objective.space, negated, whole - objective.constant)
    spent, front = seconds(lambda: search.constrained_front(objective, axes, [search.Constraint(loss)], {"loss": LOSS}))
    sizes = {"front3_subnets": len(front.rows), "front3_proven": int(front.proven.sum())}
    return {"front3_s": spent, **sizes, "front3_gap": front.gap, "front3_gap_between": front.gap_between}


def measure_fleet(
    objective: Metric, constraints: list[search.Constraint], limit: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Many sets of budgets on all constraints: CPU seconds, how many sets can be met, and the largest gap."""
    shares = np.linspace(35, 95, SETS)[:, None] * np.exp(rng.normal(0, 0.05, (SETS, len(constraints))))
    budgets = [{c.key: f"{s:.6f}%" for c, s in zip(constraints, row, strict=True)} for row in shares]
    spent, found = seconds(lambda: search.solve(objective, constraints, budgets, seconds=limit))
    met, gap = sum(solution.meets for solution in found), max(solution.gap for solution in found)
    raised = max(solution.raised / solution.raised_bound - 1 for solution in found)
    return {"fleet_s": spent, "fleet_met": met, "fleet_largest_gap": gap, "fleet_largest_raise_gap": raised}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*NETWORKS, []], help="default: all three")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each set of budgets")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    found = []
    for name in options.networks or NETWORKS:
        found.append(measure(name, options.seconds))
        pd.DataFrame(found).round(4).to_csv(options.csv, index=False)
        print(pd.DataFrame(found[-1:]).round(4).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
