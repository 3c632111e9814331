"""How many SubNets the 80 % intervals of predicted accuracies cover, over many divisions of images into two sets.

    python benchmarks/accuracy_coverage.py --models mobilenet_digits --seeds 0 2

``accuracy_predictor.py`` judges intervals by one test set. All SubNets are measured on its images, and groups of them
fail at the same ones, so that the coverage of one test set is the luck of one draw. Here the base images of validation
and test set are divided anew, ``--divisions`` times; predictors learn from one part and are judged by the other. The
evaluations are those of ``accuracy_predictor.py`` with the same arguments, and those of the pool on the test set.

With ``--finished DEVICE``, ``--directory`` is a user's project whose run is finished, ``--models`` names its model, and
``--pictures 100 175`` learns from so many of the pictures and is judged by all others.

For each model, seed, choice of evaluations (random or D-optimal) and number of them, the table has the coverage: its
mean over divisions, its standard deviation between divisions, and the coverage of the division at hand; further, as
means over divisions, the mean square of the differences between prediction and measurement up to a shift and what
intervals expect of it, both in squared log-odds, and Kendall's tau over its ceiling. Writes ``accuracy_coverage.csv``
beside this file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evaluated.network import Network
from evaluated.options import add_options, asked
from evaluated.predictors import designed, network_singles, predicted
from evaluated.resplits import divisions, on_both

from autotailor.prediction import Outcomes, fit
from autotailor.prediction.design import DRAWN
from autotailor.statistics import coverage, kendall_tau


def rows(network: Network, evaluations: Sequence[int], count: int, pictures: int) -> Iterator[dict[str, Any]]:
    """One row for each choice and number of evaluations, learnt from so many pictures (0: the validation set)."""
    held, pool = network.drawn
    singles = network_singles(network)
    judged = on_both(network, held)
    order = np.random.default_rng(0).permutation(len(pool))
    for number in evaluations:
        offered = [pool[i] for i in order[: DRAWN * number]]
        for choice, chosen in (("random", offered[:number]), ("D-optimal", designed(network, offered, number))):
            learnt = on_both(network, [*singles, *chosen])
            found = [
                judgement(network, division.learnt(learnt), division.learnt(judged), division.judged(judged))
                for division in divisions(network, count, pictures)
            ]
            own = judgement(
                network, network.outcomes([*singles, *chosen]), network.outcomes(held), network.test_outcomes(held)
            )
            covered, squares, expected, order_found = np.mean(found, axis=0)
            yield {
                "model": network.model,
                "seed": network.seed,
                "choice": choice,
                "evaluations": number,
                "divisions": count,
                "pictures": pictures or len(network.data.validation),
                "coverage": covered,
                "deviation": np.std([each[0] for each in found], ddof=1),
                "coverage_at_hand": own[0],
                "squares": squares,
                "expected": expected,
                "tau_over_ceiling": order_found,
            }


def judgement(
    network: Network, learnt: Outcomes, validation: Outcomes, test: Outcomes
) -> tuple[float, float, float, float]:
    """Coverage, mean square of differences up to their mean, its expectation, and Kendall's tau over its ceiling.

    Args:
        network: of the SubNets.
        learnt: evaluations to learn from.
        validation: the held-out SubNets on the images of ``learnt``, from which the ceiling follows.
        test: the same SubNets on other images.
    """
    prediction = predicted(fit(learnt, network.net.macs()), test.subnets)
    assert prediction.variance is not None
    differences, variance = prediction.values - test.target, prediction.variance + test.beside_shift
    tau = kendall_tau(prediction.values, test.target) / kendall_tau(validation.target, test.target)
    return coverage(differences, np.sqrt(variance)), float(differences.var()), float(variance.mean()), tau


def main() -> None:
    """Runs what is missing, prints the table, writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, pool=200)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[20, 40, 80, 160])
    parser.add_argument("--divisions", type=int, default=20, help="of the base images into two sets")
    parser.add_argument("--pictures", type=int, nargs="+", default=[0], help="to learn from; 0: those of validation")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for network, pictures in product(asked(arguments), arguments.pictures):
        for row in rows(network, arguments.evaluations, arguments.divisions, pictures):
            found.append(row)
            print(pd.DataFrame([row]).round(4).to_string(index=False, header=len(found) == 1), flush=True)
            pd.DataFrame(found).to_csv(arguments.csv, index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
