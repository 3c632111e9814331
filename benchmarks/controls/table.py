"""The table of ``fronts.py``: one row for each network, and what networks for k budgets cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sampled.training import passes

from autotailor.statistics import accuracy, accuracy_drop
from controls.parts import (
    ALONE,
    INHERITED,
    ORIGINAL,
    POLISHED,
    SCALED,
    SCALED_AS_FAST,
    SCALED_BRIEFLY,
    SCALED_IN_BUDGET,
    SLICED,
    SLICED_AS_FAST,
    SLICED_BRIEFLY,
    Part,
)
from controls.run import Run
from controls.tuning import at_end

COUNTS = (8, 40)
"""Numbers of budgets for which the cost of training is told."""


def rows(parts: Sequence[Part], groups: npt.ArrayLike) -> pd.DataFrame:
    """One row for each network of one model and seed.

    ``loss`` is in points below the original network, ``behind_polished`` in points below the polished SubNet of the
    same budget (negative where the network is more accurate). Both have standard errors, paired by image and clustered
    by base image. A number whose counterpart is not trained is NaN.

    Args:
        parts: of one model and seed.
        groups: base image of each image of the test set.
    """
    original = next((part.outcome for part in parts if part.method == ORIGINAL), None)
    polished = {part.budget: part.outcome for part in parts if part.method == POLISHED}
    found = []
    for part in parts:
        outcome, rival = part.outcome, polished.get(part.budget)
        percent, error = accuracy(outcome.right, groups)
        nothing = (float("nan"), float("nan"))
        loss = nothing if original is None else accuracy_drop(original.right, outcome.right, groups)
        behind = nothing if rival is None else accuracy_drop(rival.right, outcome.right, groups)
        found.append(
            {
                "model": part.model,
                "seed": part.seed,
                "method": part.method,
                "budget": part.budget,
                "what": outcome.what,
                "latency": 100 * outcome.latency,
                "polished_latency": 100 * outcome.polished,
                "macs": 100 * outcome.macs,
                "operators_known": outcome.known,
                "accuracy": percent,
                "standard_error": error,
                "loss": loss[0],
                "loss_error": loss[1],
                "behind_polished": behind[0],
                "behind_polished_error": behind[1],
                "lr": outcome.lr,
                "lr_at_end": bool(outcome.tried) and at_end(dict(outcome.tried)),
                "images": outcome.images,
                "passes": outcome.passes,
            }
        )
    return pd.DataFrame(found)


def costs(run: Run, parts: Sequence[Part]) -> pd.DataFrame:
    """What each method's training costs for k budgets: model, seed, method, shared, each, and ``total_k`` in images.

    An image counts once for each network that it is shown to in training. ``shared`` is what all budgets share:
    pretraining, the training of the SuperNet where a method uses its weights, and the joint training before polishing.
    The search for a learning rate counts for no method; it would multiply ``each``.
    """
    supernet = passes(run.finetune, run.data, run.net)["passes"] * run.finetune.batch_size
    joint = 0 if run.joint is None else run.joint_images * run.joint.subnets
    shared = {INHERITED: run.pretrain_images + supernet, POLISHED: run.pretrain_images + supernet + joint}
    shared |= dict.fromkeys((ALONE, SCALED, SCALED_AS_FAST, SCALED_BRIEFLY, SCALED_IN_BUDGET), 0)
    shared |= dict.fromkeys((SLICED, SLICED_AS_FAST, SLICED_BRIEFLY), run.pretrain_images)
    found = []
    for method, once in shared.items():
        each = [part.outcome.passes for part in parts if part.method == method]
        if each:
            mean = float(np.mean(each))
            totals = {f"total_{count}": once + count * mean for count in COUNTS}
            first = parts[0]
            row = {"model": first.model, "seed": first.seed, "method": method, "shared": once, "each": mean}
            found.append(row | totals)
    return pd.DataFrame(found)
