"""SubNets against the same network scaled uniformly and trained alone, over several seeds, on the test set.

    python benchmarks/seeds.py --seeds 0 1 2 --directory seeds

Each seed runs the whole pipeline and ``compare`` in a folder of its own (finished folders are only read). The scaled
network is the fastest one that is not faster than the SubNet; it is trained with the same teacher and at least the
images that the SuperNet saw, at the best of several learning rates. Writes ``seeds.csv`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

ROOT = Path(__file__).parents[1]
HALF = 0.5


def run(directory: Path, model: str, device: str, overrides: list[str]) -> Path:
    """Runs pipeline and comparison in a folder; returns the results of the device."""
    results = directory / "results" / model / device
    directory.mkdir(parents=True, exist_ok=True)
    profile = ["--snakefile", str(ROOT / "Snakefile"), "--profile", str(ROOT / "profiles" / "default")]
    config = ["--config", f"model={model}", f"device={device}", f"overrides={json.dumps(overrides)}"]
    launch = [sys.executable, str(ROOT / "workflow" / "launch.py"), *profile, "--quiet", "rules"]
    for target in ([], ["--", str(results.relative_to(directory) / "compare.csv")]):
        subprocess.run([*launch, *config, *target], cwd=directory, check=True)
    return results


def row(seed: int, results: Path) -> dict[str, float]:
    """What one seed found; accuracies in percent, losses in points against the original network."""
    summary = pd.read_csv(results / "summary.csv").set_index("name")
    compare = pd.read_csv(results / "compare.csv")
    latency = pd.read_csv(results / "validation.csv")
    accuracy = pd.read_csv(results.parent / "accuracy_validation.csv")
    original = summary.loc["original"]
    share = summary["latency_ms_measured"] / original["latency_ms_measured"]
    exported = summary.drop(index=["original", "largest"])
    fast = exported[share[exported.index] <= HALF]["accuracy_measured"].idxmax()
    subnet = summary.loc[fast]
    slower = compare[compare["latency_ms_measured"] >= subnet["latency_ms_measured"]]
    scaled = slower.loc[slower["latency_ms_measured"].idxmin()]
    return {
        "seed": seed,
        "original": original["accuracy_measured"],
        "largest": summary.loc["largest", "accuracy_measured"],
        "latency_share": share[fast],
        "subnet_loss": original["accuracy_measured"] - subnet["accuracy_measured"],
        "scaled_width": scaled["width"],
        "scaled_latency_share": scaled["latency_ms_measured"] / original["latency_ms_measured"],
        "scaled_loss": original["accuracy_measured"] - scaled["accuracy_measured"],
        "scaled_lr": scaled["learning_rate"],
        "images": scaled["images"],
        "smallest_accuracy": accuracy["measured"].min(),
        "latency_error_mean": latency["relative_error"].abs().mean(),
        "latency_tau": kendalltau(latency["predicted_ms"], latency["measured_ms"]).statistic,
        "accuracy_tau": kendalltau(accuracy["predicted"], accuracy["measured"]).statistic,
        "subnets": len(accuracy),
    }


def main() -> None:
    """Runs what is missing, prints the table, writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--directory", type=Path, default=Path("seeds"))
    parser.add_argument("--model", default="resnet_digits")
    parser.add_argument("--device", default="host")
    parser.add_argument("--overrides", nargs="*", default=['compare.names=["budget_02"]'])
    parser.add_argument("--read", action="store_true", help="read finished folders, run nothing")
    arguments = parser.parse_args()
    rows = []
    for seed in arguments.seeds:
        directory = arguments.directory.resolve() / f"seed_{seed}"
        if arguments.read:
            results = directory / "results" / arguments.model / arguments.device
        else:
            results = run(directory, arguments.model, arguments.device, [f"seed={seed}", *arguments.overrides])
        rows.append(row(seed, results))
    table = pd.DataFrame(rows)
    table.to_csv(Path(__file__).with_suffix(".csv"), index=False)
    show(table)


def show(table: pd.DataFrame) -> None:
    """Prints one column for each seed, and the mean."""
    shown = Table(title="accuracies in percent, losses in points against the original network, on the test set")
    shown.add_column("")
    for seed in table["seed"]:
        shown.add_column(f"seed {seed}", justify="right")
    shown.add_column("mean", justify="right")
    for name in table.columns.drop("seed"):
        shown.add_row(name, *(f"{value:.4g}" for value in [*table[name], table[name].mean()]))
    Console().print(shown)


if __name__ == "__main__":
    main()
