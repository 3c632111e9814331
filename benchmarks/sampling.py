"""Compares sampling strategies of weight-shared training with equal passes, paired over seeds, on the test set.

    python benchmarks/sampling.py --lut results/resnet_digits/host/lut.csv --seeds 0 1 2 3 4

A *pass* is the forward and backward pass of one SubNet over one batch. All variants train the same number of passes
from the same pretrained network of a seed. Each variant is judged by the accuracy that SubNets inherit:

- 200 fixed SubNets of the model's own space, as many for each resolution and third of that resolution's range,
- the largest and the smallest SubNet,
- the SubNets for 30, 35, 50, 65 and 80 % of the latency, which are chosen as in the pipeline (sensitivities, search,
  candidates): ``half`` is that for 50 %, ``front`` the mean of the five.

Latency is predicted from ``--lut``; without it, MACs stand for latency. Differences are paired with the first variant,
seed by seed; their standard errors are over seeds. Each finished training, SubNet and variant is kept in
``--directory``, so that a run that was killed continues. Writes ``sampling.csv`` beside this file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table
from sampled.judging import PANEL, Judge
from sampled.training import Run, finished, train
from sampled.variants import VARIANTS

KEYS = ("model", "variant", "seed")
COUNTS = ("subnets", "steps", "passes", "mac_passes", "seconds", "cpu_seconds")


def rows(runs: Sequence[Run], lut: Path | None) -> pd.DataFrame:
    """One row for each run: model, variant, seed, costs of the training, and accuracies in percent."""
    found = []
    for run in runs:
        if not finished(run.result):
            Judge(run, lut).write(train(run))
        found.append(finished(run.result))
    return pd.DataFrame(found)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over seeds of each variant's differences to the first variant, by model and variant."""
    measures = [column for column in table.columns if column not in KEYS]
    wide = table.set_index(list(KEYS))[measures].astype(float)
    found = []
    for model, of_model in wide.groupby(level="model", sort=False):
        variants = list(dict.fromkeys(of_model.index.get_level_values("variant")))
        base = of_model.xs(variants[0], level="variant")
        for variant in variants[1:]:
            paired = (of_model.xs(variant, level="variant") - base).dropna(how="all")
            for measure in measures:
                found.append((model, variant, measure, len(paired), paired[measure].mean(), paired[measure].sem()))
    return pd.DataFrame(found, columns=["model", "variant", "measure", "seeds", "difference", "standard_error"])


def show(table: pd.DataFrame) -> None:
    """Prints means over seeds, and below each its paired difference to the first variant with the standard error."""
    against = differences(table).set_index(["model", "variant", "measure"])
    for model, of_model in table.groupby("model", sort=False):
        shown = Table(title=f"{model}: accuracies in percent on the test set; mean over seeds, difference ± its error")
        shown.add_column("")
        variants = list(dict.fromkeys(of_model["variant"]))
        for variant in variants:
            shown.add_column(f"{variant} ({(of_model['variant'] == variant).sum()})", justify="right")
        for measure in [column for column in table.columns if column not in KEYS]:
            cells = []
            for variant in variants:
                text = f"{of_model.loc[of_model['variant'] == variant, measure].mean():.4g}"
                if variant != variants[0] and measure not in COUNTS:
                    found = against.loc[(model, variant, measure)]
                    text += f"\n{found.difference:+.2f} ± {found.standard_error:.2f}"
                cells.append(text)
            shown.add_row(measure, *cells)
        Console().print(shown)


def main() -> None:
    """Runs what is missing, prints the table, writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet_digits"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--panel", type=int, default=PANEL, help="judge by the first so many of the random SubNets")
    parser.add_argument("--lut", type=Path, help="LUT of the models; without it MACs stand for latency")
    parser.add_argument("--directory", type=Path, default=Path("sampling"))
    parser.add_argument("--overrides", nargs="*", default=[], help="KEY=VALUE of the configuration, for all variants")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    runs = [
        Run(arguments.directory.resolve(), model, variant, seed, tuple(arguments.overrides), arguments.panel)
        for model in arguments.models
        for seed in arguments.seeds
        for variant in arguments.variants
    ]
    table = rows(runs, arguments.lut)
    table.to_csv(arguments.csv, index=False, float_format="%.4f")
    show(table)


if __name__ == "__main__":
    main()
