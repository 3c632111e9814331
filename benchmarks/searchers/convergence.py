"""How fast NSGA-II comes near the exact front, in CPU seconds of this process."""

from __future__ import annotations

import time
from dataclasses import dataclass

from autotailor.search import Front, Objectives, SearchConfig
from autotailor.search.genetic import evolve
from autotailor.search.optimizer import hypervolume_ratio

ENOUGH = 0.999


@dataclass(frozen=True)
class Convergence:
    """One run of NSGA-II.

    Attributes:
        seconds: until the share of the hypervolume was ``ENOUGH``, the beam search included; None where it never was.
        evaluations: distinct SubNets that were predicted until then, or in the whole run.
        share: hypervolume of the front over that of the exact front, after the whole run.
        whole_seconds: of the whole run.
        whole_evaluations: distinct SubNets that were predicted in the whole run.
    """

    seconds: float | None
    evaluations: int
    share: float
    whole_seconds: float
    whole_evaluations: int


def converge(objectives: Objectives, exact: Front, config: SearchConfig) -> Convergence:
    """Runs NSGA-II as the rule search does, and measures its front after each generation.

    Args:
        objectives: accuracy and cost.
        exact: the exact front of both.
        config: of NSGA-II.
    """
    spent, share, reached = 0.0, 0.0, None
    start = time.process_time()
    for evaluator in evolve(objectives, config):
        spent += time.process_time() - start
        share = hypervolume_ratio(Front.of(objectives, evaluator.best(), "genetic"), exact)
        if reached is None and share >= ENOUGH:
            reached = spent, len(evaluator.cache)
        start = time.process_time()
    whole = len(evaluator.cache)
    return Convergence(reached and reached[0], reached[1] if reached else whole, share, spent, whole)
