"""Compares NSGA-II with random search and regularised evolution on the paper's spaces, and counts predictions a second.

    OMP_NUM_THREADS=1 python benchmarks/search_methods.py               # all seven spaces, three seeds
    OMP_NUM_THREADS=1 python benchmarks/search_methods.py resnet50 --csv methods.csv

Latency and accuracy are the synthetic metrics of ``search.py``, pair terms included; the exact front under them is the
yardstick. NSGA-II runs with the configuration's values. The others get as many distinct SubNets to predict as its whole
run had. A share is the hypervolume of a front over that of the exact front; the spread is the standard deviation over
the seeds. A prediction is that of both metrics for one SubNet. All times are CPU seconds of one process on one core.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from search import PREDICTED, accuracy, compiled, latency, seconds
from searchers.alternatives import random_search, regularised_evolution
from searchers.convergence import converge

from autotailor import search
from autotailor.ir.space.subnet import canonical
from autotailor.search.optimizer import hypervolume_ratio

NETWORKS = ("resnet50", "mobilenetv2", "mobilenetv3_ofa", "proxylessnas", "convnext_tiny", "vit_base", "levit")
OTHERS = {"random": random_search, "evolution": regularised_evolution}
SEEDS = (0, 1, 2)


def measure(name: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """One row of the table."""
    net, rng = compiled(name), np.random.default_rng(0)
    cost = latency(net, rng)
    objectives = search.Objectives(accuracy(net.space, rng), cost)
    row: dict[str, Any] = {"network": name, "variables": len(net.space), "predictions_per_s": speed(objectives, rng)}
    row["exact_s"], exact = seconds(lambda: search.exact_front(objectives))
    row["exact_subnets"], row["exact_slack_ms"] = len(exact.front), exact.slack
    runs = [converge(objectives, exact.front, search.SearchConfig(seed=seed)) for seed in seeds]
    row["nsga2_s"] = max(r.seconds or np.nan for r in runs) if all(r.seconds for r in runs) else np.nan
    row["nsga2_evaluations"] = round(np.mean([r.evaluations for r in runs]))
    row["whole_s"] = np.mean([r.whole_seconds for r in runs])
    row["whole_evaluations"] = round(np.mean([r.whole_evaluations for r in runs]))
    shares = {"nsga2": [r.share for r in runs]}
    for method, run in OTHERS.items():
        found = (run(objectives, r.whole_evaluations, seed) for r, seed in zip(runs, seeds, strict=True))
        fronts = (search.Front.of(objectives, rows, method) for rows in found)
        shares[method] = [hypervolume_ratio(front, exact.front) for front in fronts]
    for method, values in shares.items():
        row[f"{method}_share"], row[f"{method}_spread"] = np.mean(values), np.std(values, ddof=1)
    return row


def speed(objectives: search.Objectives, rng: np.random.Generator) -> int:
    """SubNets whose latency and accuracy are predicted in one second."""
    space = objectives.space
    drawn = canonical(space, np.stack([rng.integers(0, len(v.choices), PREDICTED) for v in space], axis=1))
    metrics = objectives.cost, objectives.accuracy
    for metric in metrics:
        metric.predict(drawn[:1])
    return round(PREDICTED / seconds(lambda: [metric.predict(drawn) for metric in metrics])[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*NETWORKS, []], help="default: all seven")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    found = []
    for name in options.networks or NETWORKS:
        found.append(measure(name, SEEDS))
        print(found[-1], flush=True)
        pd.DataFrame(found).round(5).to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
