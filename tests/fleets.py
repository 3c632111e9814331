"""Fleets of invented runs in small spaces, whose best SubNets can be found by trying all of them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from autotailor.fleet.runs import Fleet
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space, Variable
from autotailor.search import LATENCY, Front, LatencyForecast, Objectives
from autotailor.task.scores import ACCURACY

MODELS, DEVICES = ("first", "second"), ("host", "phone")
SHARES = (0.4, 0.8)
"""Budgets of every pair, as shares of the range of its latencies."""
TRUSTED = LatencyForecast(confidence=0.9, offset=0.02, spread=0.03)


@dataclass(frozen=True, eq=False)
class Known:
    """One invented run, with all SubNets of its space.

    Attributes:
        everything: choice indices of all SubNets ``[n, variables]``.
        run: what a fleet asks of a run.
    """

    everything: IntArray
    run: Any


def space(model: str) -> Space:
    """A space of 36 SubNets; each model has names of its own."""
    sizes = (3, 3, 4)
    return Space(tuple(Variable(f"{model}.{i}", "width", tuple(range(size)), 0) for i, size in enumerate(sizes)))


def known(folder: Path, model: str, device: str, seed: int, forecast: LatencyForecast = TRUSTED) -> Known:
    """A run with random tables; the accuracy of a model differs a little between devices."""
    rng, where = np.random.default_rng(seed), np.random.default_rng([seed, len(device)])
    variables = space(model)
    pairs = list(itertools.pairwise(variables))
    drops = [Term((v.name,), -np.sort(rng.exponential(2.0, len(v.choices)))) for v in variables]
    seen = [Term((v.name,), where.normal(0.0, 0.1, len(v.choices))) for v in variables]
    costs = [
        Term((a.name, b.name), np.sort(where.uniform(0.1, 1.0, (len(a.choices), len(b.choices))))[:, ::-1].copy())
        for a, b in pairs
    ]
    accuracy = Metric("accuracy", "%", variables, (*drops, *seen), 95.0)
    objectives = Objectives(accuracy, Metric("latency", "ms", variables, tuple(costs), 0.05))
    everything = np.array(list(itertools.product(*(range(len(v.choices)) for v in variables))))
    front = Front.of(objectives, everything, "exact")
    low, high = front.cost[0], front.cost[-1]
    budgets = [low + share * (high - low) for share in SHARES]
    path = folder / model / device
    path.mkdir(parents=True)
    names = [f"budget_{number:02d}" for number in range(1, len(budgets) + 1)]
    pd.DataFrame({"budget": names, "budget_ms": budgets}).to_csv(path / "candidates.csv", index=False)
    timings = [("pretrain", 60.0), ("profile", 30.0 * (1 + len(device)))]
    pd.DataFrame(timings, columns=["stage", "seconds"]).to_csv(path / "timings.csv", index=False)
    (path.parent / "provenance").mkdir(exist_ok=True)
    (path.parent / "provenance" / "pretrain.json").write_text("{}")
    run = SimpleNamespace(
        folder=SimpleNamespace(model=model, device=device, path=path, file=lambda name: path / name),
        cost=LATENCY,
        score=ACCURACY,
        pareto=front,
        forecast=forecast,
        objectives=objectives,
        configuration={"search": {}},
        summary=summary(front, budgets, names, rng),
    )
    return Known(everything, run)


def summary(front: Front, budgets: Sequence[float], names: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """What was measured of the largest SubNet, of one for each budget, and of the original network."""
    rows = [len(front) - 1, *(front.position(budget) for budget in budgets), len(front) - 1]
    cost = front.cost[rows] * rng.uniform(0.98, 1.02, len(rows))
    return pd.DataFrame(
        {
            "name": ["largest", *names, "original"],
            "subnet": [front.subnets[row].id for row in rows],
            "weights": "inherited",
            "latency_ms_measured": cost,
            "latency_ms_predicted": front.cost[rows],
            "accuracy_measured": front.accuracy[rows] + rng.uniform(0.0, 1.0, len(rows)),
            "macs_m": 1.0,
        }
    )


def fleet(folder: Path, seed: int = 0) -> tuple[Fleet, Mapping[tuple[str, str], Known]]:
    """Two models on two devices."""
    found = {
        (model, device): known(folder, model, device, 10 * seed + number)
        for number, model in enumerate(MODELS)
        for device in DEVICES
    }
    return Fleet({pair: each.run for pair, each in found.items()}), found
