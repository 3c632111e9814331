"""How well the accuracy of SubNets is predicted from few evaluations, against other predictors given more of them.

    python benchmarks/accuracy_predictor.py --models resnet_digits --seeds 0 1 2

For each model and seed: random SubNets are held out, and evaluated on the test set; predictors learn from evaluations
on the validation set. Every predictor is given the single modifications, and besides

- ``single drops``: nothing (paper, eq. 3),
- ``ours, random``: n random SubNets,
- ``ours``: a D-optimal choice of n among four times as many random SubNets, or among the whole pool,
- ``answers alone, random`` and ``answers alone``: the same SubNets as the two before, but only right and wrong answers
  are learnt from, and no losses,
- ``MLP`` (as in Once-for-All) and ``boosting``: n random SubNets, and 2, 5 and 10 times as many.

Random SubNets are drawn from a pool, ``--splits`` times; a predictor that needs more than the pool has is left out. The
scores are means over draws with their standard errors (``evaluated/scores.py``). The ceilings of Kendall's tau and of
the top five are those of the held-out SubNets' own accuracies on the validation set, as predictions of the test set: no
predictor that learns from the validation set can be expected to pass them by much.

Trained SuperNets and evaluations are kept in ``--directory``, laid out as by ``sampling.py``, so that a run that was
killed continues. Writes ``accuracy_predictor.csv`` beside this file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evaluated.network import Network
from evaluated.options import add_options, asked
from evaluated.predictors import (
    Predictor,
    answers_alone,
    boosting,
    designed,
    network_singles,
    ours,
    perceptron,
    single_drops,
)
from evaluated.scores import scores, top
from rich.console import Console
from rich.table import Table

from autotailor.ir.space.subnet import SubNet
from autotailor.prediction.design import DRAWN
from autotailor.statistics import kendall_tau

MODELS: dict[str, Predictor] = {"ours": ours, "answers alone": answers_alone}
RIVALS: dict[str, Predictor] = {"MLP": perceptron, "boosting": boosting}
TIMES = (1, 2, 5, 10)
KEYS = ["model", "seed", "predictor", "evaluations"]


def rows(network: Network, evaluations: Sequence[int], splits: int) -> Iterator[dict[str, Any]]:
    """Scores of all predictors, one row for each draw of evaluated SubNets."""
    held, pool = network.drawn
    singles = network_singles(network)
    test = network.test_outcomes(held)
    own = network.outcomes(held).target
    ceiling = kendall_tau(own, test.target)
    ceilings = {"ceiling": ceiling, "top5_ceiling": top(own, test.target)}

    def judged(name: str, predictor: Predictor, learnt: Sequence[SubNet]) -> dict[str, Any]:
        found = scores(predictor(network, [*singles, *learnt], held), test, ceiling)
        head = {"model": network.model, "seed": network.seed, "predictor": name, "evaluations": len(learnt)}
        return {**head, **ceilings, **found}

    yield judged("single drops", single_drops, [])
    given = sorted({count * times for count in evaluations for times in TIMES} - {0})
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(pool))
        for count in given:
            learnt = [pool[i] for i in order[:count]]
            if len(learnt) == count:
                if count in evaluations:
                    chosen = designed(network, [pool[i] for i in order[: DRAWN * count]], count)
                    for name, predictor in MODELS.items():
                        yield judged(f"{name}, random", predictor, learnt)
                        yield judged(name, predictor, chosen)
                for name, predictor in RIVALS.items():
                    yield judged(name, predictor, learnt)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means over draws, with the standard errors of tau and top5 and the number of draws."""
    grouped = table.groupby(KEYS, sort=False)
    means = grouped.mean()
    for column in ("tau", "top5"):
        means[f"{column}_error"] = grouped[column].sem()
    return means.assign(draws=grouped.size()).reset_index()


def show(table: pd.DataFrame) -> None:
    """Prints one line for each predictor and number of evaluations."""
    shown = Table(title="Accuracy on the test set of SubNets without evaluation")
    for column in [*KEYS, "draws", "tau", "of ceiling", "top 5", "its ceiling", "error", "80 % interval"]:
        shown.add_column(column, justify="right")
    for row in table.itertuples():
        shown.add_row(
            *(str(getattr(row, key)) for key in (*KEYS, "draws")),
            f"{row.tau:.3f} ± {row.tau_error:.3f}",
            f"{row.tau_over_ceiling:.2f}",
            f"{100 * row.top5:.0f} %",
            f"{100 * row.top5_ceiling:.0f} %",
            f"{row.error:.2f}",
            "" if row.coverage != row.coverage else f"{100 * row.coverage:.0f} %",
        )
    Console().print(shown)


def main() -> None:
    """Runs what is missing, prints the table, writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, pool=1600)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[0, 20, 40, 80, 160])
    parser.add_argument("--splits", type=int, default=10, help="draws from the pool")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for network in asked(arguments):
        found += rows(network, arguments.evaluations, arguments.splits)
    table = summary(pd.DataFrame(found))
    table.to_csv(arguments.csv, index=False, float_format="%.4f")
    show(table)


if __name__ == "__main__":
    main()
