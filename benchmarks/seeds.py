"""Compares SubNets with the same network scaled uniformly and trained alone, over several seeds, on the test set.

    python benchmarks/seeds.py --seeds 0 1 2 --directory seeds

Each seed runs the whole pipeline and ``compare`` in a folder of its own; finished rules there are not run again. Each
SubNet at half the original's latency or less is compared with the network scaled uniformly to the SubNet's latency (see
``autotailor.measurement.comparison``). The scaled network is trained alone, with the same teacher, at least as many
images as the SuperNet, and the best of several learning rates. Writes ``seeds.csv`` beside this file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from pipeline import snakemake
from rich.console import Console
from rich.table import Table

from autotailor import artifacts
from autotailor.statistics import kendall_tau

HALF = 0.5


def run(directory: Path, model: str, device: str, overrides: list[str]) -> Path:
    """Runs pipeline and comparison in a folder; returns the results of the device."""
    results = directory / "results" / model / device
    for targets in ([], [str(results.relative_to(directory) / "compare.csv")], []):
        snakemake(directory, model, device, overrides, targets)
    return results


def rows(seed: int, results: Path) -> list[dict[str, float | str]]:
    """One row for each exported SubNet at half the original's latency or less.

    Accuracies are in percent on the test set, losses in points below the original network. ``gain`` is the SubNet's
    accuracy minus that of the network scaled to the SubNet's latency.
    """
    summary = pd.read_csv(results / "summary.csv").set_index("name")
    compare = pd.read_csv(results / "compare.csv")
    latency = pd.read_csv(results / "validation.csv")
    accuracy = pd.read_csv(results.parent / "accuracy_validation.csv")
    trained = artifacts.read_json(results.parent / "finetune.json")
    original = summary.loc["original"]
    of_seed = {
        "original": original["accuracy_measured"],
        "largest": summary.loc["largest", "accuracy_measured"],
        "smallest": trained["smallest_test_accuracy"],
        "latency_error_mean": latency["relative_error"].abs().mean(),
        "latency_tau": kendall_tau(latency["predicted_ms"], latency["measured_ms"]),
        "accuracy_tau": kendall_tau(accuracy["predicted"], accuracy["measured"]),
        "subnets": len(accuracy),
    }
    found: list[dict[str, float | str]] = []
    for name, subnet in summary.drop(index=["original", "largest"]).iterrows():
        share = subnet["latency_ms_measured"] / original["latency_ms_measured"]
        if share > HALF or not any(name in names.split() for names in compare["subnets"]):
            continue
        scaled = compare[[name in names.split() for names in compare["subnets"]]].iloc[0]
        found.append(
            {
                "seed": seed,
                "name": str(name),
                "latency_share": share,
                "subnet_loss": original["accuracy_measured"] - subnet["accuracy_measured"],
                "scaled_width": scaled["width"],
                "scaled_latency_share": scaled["latency_ms_measured"] / original["latency_ms_measured"],
                "scaled_loss": original["accuracy_measured"] - scaled["accuracy_measured"],
                "gain": subnet["accuracy_measured"] - scaled["accuracy_measured"],
                "scaled_lr": scaled["learning_rate"],
                "images": scaled["images"],
                **of_seed,
            }
        )
    return found


def main() -> None:
    """Runs what is missing, prints the table, writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--directory", type=Path, default=Path("seeds"))
    parser.add_argument("--model", default="resnet_digits")
    parser.add_argument("--device", default="host")
    parser.add_argument("--overrides", nargs="*", default=[], help="KEY=VALUE of the configuration")
    parser.add_argument("--read", action="store_true", help="read finished folders, run nothing")
    arguments = parser.parse_args()
    found = []
    for seed in arguments.seeds:
        directory = arguments.directory.resolve() / f"seed_{seed}"
        if arguments.read:
            results = directory / "results" / arguments.model / arguments.device
        else:
            results = run(directory, arguments.model, arguments.device, [f"seed={seed}", *arguments.overrides])
        found += rows(seed, results)
    table = pd.DataFrame(found)
    table.to_csv(Path(__file__).with_suffix(".csv"), index=False)
    show(table)


def show(table: pd.DataFrame) -> None:
    """Prints for each SubNet one column for each seed, and the mean."""
    for name, group in table.groupby("name"):
        shown = Table(title=f"{name}: accuracies in percent, losses and gain in points, on the test set")
        shown.add_column("")
        for seed in group["seed"]:
            shown.add_column(f"seed {seed}", justify="right")
        shown.add_column("mean", justify="right")
        for column in group.columns.drop(["seed", "name"]):
            values = [*group[column], group[column].mean()]
            shown.add_row(column, *(f"{value:.4g}" for value in values))
        Console().print(shown)


if __name__ == "__main__":
    main()
