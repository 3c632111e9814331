"""The methods of the papers side by side: same pictures, table of latencies and polishing, at eight budgets.

    python benchmarks/methods.py PROJECT MODEL DEVICE recipe=quick --directory methods --csv methods.csv

PROJECT is a folder made by ``autotailor new``, with ``conf/model/MODEL.yaml`` for weights that arrived. Each method has
a run in a folder of its own below ``--directory``; ``conf/method/METHOD.yaml`` gives it space, training and search:

- ``autotailor``: the space of the model's file; ``autotailor, alternatives`` has the other papers' blocks beside it;
- ``adaptivenet``: merged and shrunk blocks, trained beside their blocks and then together from the labels;
- ``legodnn``: blocks pruned by 0.2, 0.4, 0.6 and 0.8, trained beside their blocks; the sum of single drops decides;
- ``adascale``: compression operators; ``adascale, exits`` is the same with exits, at budgets of the expected latency;
- ``uniform``: one share of all channels;
- ``nestdnn``: the network as Torch-Pruning leaves it at eight ratios (the paper's NestDNN*), which is no SubNet.

First ``--measure`` takes the latency of every operator of all methods into one table, on a quiet machine; a store of
measurements that lies in ``--directory/luts`` is used. Budgets are percent of the given network's latency by this
table (the paper's figure 13); where DEVICE is ``macs``, of its multiply-accumulates, and nothing is measured (figure
14). A method has no answer below its smallest SubNet. The search of the pipeline is exact for all of them. At the
budgets of ``--polished`` every SubNet is polished with as many images, by the same teacher; at the others the best one
of the predicted front is judged with the weights that it inherits.

An answer is kept as soon as it is known, so that a run that was killed goes on, and ``--only METHOD`` runs some.
Accuracies are percent of the test set; ``behind`` is ours less theirs, paired, with its standard error.
"""

from __future__ import annotations

import argparse
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
from controls.style import write_svg
from papers import answers, costs, figures
from papers.campaign import ALTERNATIVES, METHODS, PIPELINE, WITH_EXITS, Campaign
from plain_table import plain_table
from rich.console import Console
from rivals import right

BUDGETS = (20, 30, 40, 50, 60, 70, 80, 90)
POLISHED = BUDGETS
SHOWN = ("method", "seed", "budget", "latency", "inherited_test", "polished_test", "polished_behind", "polished_error")


def report(campaign: Campaign, csv: Path, drawn: Path) -> None:
    """Prints the tables of all that is known, and writes them and the figures."""
    known = answers.read_all(campaign.answers)
    run = campaign.run(PIPELINE[0], known[0].seed)
    with chdir(run.folder):
        groups = run.splits.test.groups
        _, whole = right(run, run.original.original, run.original.largest())
        paid = costs.table(campaign, known[0].seed)
    order = (*METHODS, WITH_EXITS)
    rows = answers.table(known, groups, order)
    given, name = 100 * float(np.mean(whole)), csv.stem
    title = name.replace("_", " ")
    console = Console(width=150)
    console.print(
        plain_table(
            rows.reindex(columns=list(SHOWN)), f"Right answers of the test set; the given network has {given:.1f} %"
        )
    )
    for ours in (each for each in (answers.OURS, ALTERNATIVES) if any(one.method == each for one in known)):
        apart = pd.DataFrame(list(answers.standings(answers.table(known, groups, order, ours), ours)))
        console.print(plain_table(apart, f"{ours} and the best rival"))
    console.print(plain_table(paid, "What each method costs"))
    rows.to_csv(csv, index=False, float_format="%.4f")
    paid.to_csv(csv.with_name(f"{name}_costs.csv"), index=False, float_format="%.4f")
    write_svg(figures.fronts(title, rows, given, campaign.limited), drawn / f"{name}.svg")
    write_svg(figures.costs(title, paid), drawn / f"{name}_costs.svg")


def main() -> None:
    """Runs what is missing, and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("model")
    parser.add_argument("device")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE for every method")
    parser.add_argument("--directory", type=Path, default=Path("methods"))
    parser.add_argument("--only", nargs="*", choices=METHODS, default=METHODS, help="all where none is given")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS), help="percent of the latency")
    parser.add_argument("--polished", type=int, nargs="+", default=list(POLISHED), help="of them, those polished")
    parser.add_argument("--images", type=int, default=4096, help="that each SubNet sees in polishing")
    parser.add_argument("--measure", action="store_true", help="measure the operators of all methods, train nothing")
    parser.add_argument("--read", action="store_true", help="report what is known, train nothing")
    parser.add_argument("--csv", type=Path, default=Path("methods.csv"), help="its name is the title of the figures")
    parser.add_argument("--figures", type=Path, default=Path())
    asked = parser.parse_args()
    campaign = Campaign(
        asked.project.resolve(), asked.model, asked.device, tuple(asked.overrides), asked.directory.resolve(),
        tuple(sorted(asked.budgets)), tuple(sorted(asked.polished)), asked.images,
    )  # fmt: skip
    csv, drawn = asked.csv.resolve(), asked.figures.resolve()
    if asked.measure:
        campaign.measure(asked.only, asked.seeds[0])
        return
    for seed in asked.seeds:
        for method in () if asked.read else asked.only:
            campaign.answer(method, seed)
    report(campaign, csv, drawn)


if __name__ == "__main__":
    main()
