"""Compares polished SubNets with honest controls at eight budgets, paired by base image, on the test set.

    python benchmarks/fronts.py --lut results/resnet_digits/host/lut.csv --models resnet_digits --seeds 0 1 2

At each budget from 15 to 80 % of the original network's latency:

1. ``inherited``: the best SubNet with the SuperNet's weights.
2. ``polished``: the winner of the race of the rule ``polish``, with weights of its own. One joint training of the
   candidates of all budgets comes before.
3. ``alone``: the architecture of (2), trained from scratch.
4. ``scaled``: the original network with all widths times one factor, trained from scratch.
5. ``sliced``: the original network without its least important channels, tuned (Torch-Pruning; the paper's NestDNN*).
6. ``original`` as it came, and ``trained on`` for as many images as the SuperNet saw. It has no budget.

The largest SubNet teaches all of (2) to (6). Networks (2) to (5) have seen as many images each, pretraining included.
Each method's learning rate is searched alike: steps by a factor of three until the best rate lies inside, the
validation set decides. The SuperNet's own learning rate is the configuration's.

SubNets are chosen by the latency that ``--lut`` predicts; without it, MACs stand for latency. Networks (4) and (5) have
operators that a LUT of SubNets does not know (the output counts them). ``scaled`` and ``sliced`` are the narrowest
networks with at least as many MACs as the polished SubNet of their budget. ``scaled as fast`` and ``sliced as fast``
have the latency of the polished SubNet, measured with it in one run; where no width has, the control is favoured.
``scaled in budget`` is the widest network that meets the budget, even if the polished SubNet is far below the budget.
``scaled briefly`` and ``sliced briefly`` are these networks, trained with only as many images as polishing shows.
``--measure`` measures these networks and trains nothing, for a moment in which the machine is quiet; training reads the
latencies that are there.

The workflow runs in ``--directory``, and each finished network is kept there, so that a run that was killed continues.
Processes for different models or seeds may share the directory. ``--read`` trains nothing. Writes ``fronts.csv`` beside
this file and one figure for each model to ``--figures``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from controls.budgets import BUDGETS
from controls.figure import front_figure
from controls.parts import METHODS, finished, measure, train_missing
from controls.run import Run
from controls.shown import show
from controls.style import write_svg
from controls.table import costs, rows

MODELS = ("resnet_digits", "mobilenet_digits", "vit_digits")


def main() -> None:
    """Trains what is missing, prints the tables, writes the CSV and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS), choices=BUDGETS, help="in this order")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--lut", type=Path, help="LUT of the models; without it MACs stand for latency")
    parser.add_argument("--directory", type=Path, default=Path("fronts"))
    parser.add_argument("--overrides", nargs="*", default=[], help="KEY=VALUE of the configuration")
    parser.add_argument("--measure", action="store_true", help="measure what is matched by latency, train nothing")
    parser.add_argument("--read", action="store_true", help="read finished networks, train nothing")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    parser.add_argument("--figures", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "figures")
    arguments = parser.parse_args()
    overrides = tuple(arguments.overrides)
    found, totals = [], []
    for model in arguments.models:
        for seed in arguments.seeds:
            run = Run(arguments.directory.resolve(), model, seed, overrides, arguments.lut)
            if arguments.measure:
                measure(run, arguments.budgets, arguments.methods)
            elif not arguments.read:
                run.prepare()
                train_missing(run, arguments.budgets, arguments.methods)
            parts = list(finished(run, BUDGETS))
            if parts:
                found.append(rows(parts, run.data.test.groups))
                totals.append(costs(run, parts))
    if not found:
        parser.error(f"{arguments.directory} holds no finished network; leave out --read, or name its folder")
    table = pd.concat(found, ignore_index=True)
    table.to_csv(arguments.csv, index=False, float_format="%.4f")
    show(table, pd.concat(totals, ignore_index=True))
    for model, of_model in table.groupby("model", sort=False):
        arguments.figures.mkdir(parents=True, exist_ok=True)
        write_svg(front_figure(str(model), of_model), arguments.figures / f"fronts_{model}.svg")


if __name__ == "__main__":
    main()
