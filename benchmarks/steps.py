"""Judges the monitor on simulated traces of long inferences, where recordings take a quiet machine.

    python benchmarks/steps.py

Simulated are co-runners, a sawtooth of CPU quota and bursts (``adapting/loads.py``), for largest members of 40 to
160 ms of CPU time and quotas of periods of 20 and 100 ms; the deadline is 1.5 times the largest member's CPU time. Each
trace is replayed from three beginnings, because a replay is a chaotic path. Prints missed
deadlines, gain (accuracy above the smallest member, over the clairvoyant's) and the error of predictions, each as a
mean over the traces; also where the quota is read. It takes seconds, on a busy machine too, and repeats exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from adapting import loads
from adapting.recording import Recorded
from adapting.replay import accuracies, clairvoyant, judge, one_late, play, predictions
from adapting.rivals import Ours
from adapting.simulated import members, simulated
from runtime import PREPARED_S, SEEN

from autotailor.serving import Quota

SCENES = ((40.0, 30.0, 20.0), (80.0, 60.0, 20.0), (80.0, 60.0, 100.0), (160.0, 120.0, 100.0))
"""Largest member's CPU time in milliseconds, seconds of a trace, and period of its quota in milliseconds."""
LOADS = ("co-runners", "quota", "bursts")
BEGINNINGS, APART = 3, 3
QUANTILE = 0.9


def quota_at(recorded: Recorded, steps: list[loads.Step], period_ms: float, second: float) -> Quota:
    """What a control group's files would say at a second of a trace."""
    at = int(np.searchsorted(recorded.seconds, second, side="right")) - 1
    share = steps[int(recorded.step[max(at, 0)])].quota
    return Quota(share, period_ms) if share < 1 else Quota()


def rows(number: int, load: str) -> Iterator[dict[str, object]]:
    """What each controller does on one trace, from each beginning."""
    largest_ms, seconds, period_ms = SCENES[number]
    steps = loads.bursts(seconds, 10 + number) if load == "bursts" else loads.LOADS[load](seconds)
    whole = simulated(steps, seconds, largest_ms, period_ms, np.random.default_rng(number))
    pool, deadline = members(largest_ms), 1.5 * largest_ms
    accuracy, last, prepared = accuracies(pool), len(pool) - 1, [PREPARED_S] * len(pool)
    for beginning in range(BEGINNINGS):
        recorded = whole.part(APART * beginning, len(whole.seconds))
        known = clairvoyant(recorded, accuracy, deadline, SEEN)
        best = judge(recorded, known, accuracy, deadline).accuracy
        ours = {"ours": Ours(pool, deadline, QUANTILE)}
        if load == "quota":
            ours["ours, quota read"] = Ours(pool, deadline, QUANTILE, partial(quota_at, recorded, steps, period_ms))
        played = {name: play(recorded, each, last, prepared) for name, each in ours.items()}
        errors = [row[0] for row in predictions(recorded, Ours(pool, deadline, QUANTILE), last, prepared)]
        for name, each in (played | {"one late": one_late(recorded, known, last)}).items():
            found = judge(recorded, each, accuracy, deadline)
            gain = (found.accuracy - accuracy[0]) / (best - accuracy[0])
            error = float(np.median(errors)) if name == "ours" and errors else np.nan
            yield {"load": load, "controller": name, "missed": found.missed, "gain": gain, "error": error}


def main() -> None:
    """Prints the means."""
    table = pd.DataFrame([row for number in range(len(SCENES)) for load in LOADS for row in rows(number, load)])
    means = table.groupby(["load", "controller"], sort=False).mean()
    print(means.to_string(float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    main()
