"""Replays a recorded trace through a controller, and judges what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import kendalltau

from autotailor.serving.files import Member

from .recording import Recorded
from .rivals import Controller, Ours

NEAR_ROUNDS = 10
"""Rounds at the end of a step whose medians a prediction is compared with."""
NEAR_S = 0.5
"""A clairvoyant knows the latencies of all members within so many seconds of the same step of the load."""
ON_TIME = 5
"""So many inferences on time in a row mean that a controller has recovered from a step of the load."""


@dataclass(frozen=True, eq=False)
class Played:
    """What a controller ran: the member and its latency in each round, ``[t]``."""

    members: np.ndarray
    latency: np.ndarray


@dataclass(frozen=True)
class Judged:
    """How a controller did.

    Attributes:
        missed: share of the inferences that missed the deadline.
        accuracy: mean of the members that ran, in percent.
        latency_ms: mean.
        p95_ms: 95 % of the inferences took at most this.
        switches: to another member.
        recovery: inferences after a step of the load until ``ON_TIME`` in a row were on time: median over the steps.
    """

    missed: float
    accuracy: float
    latency_ms: float
    p95_ms: float
    switches: int
    recovery: float


def play(recorded: Recorded, controller: Controller, first: int, prepared_s: Sequence[float]) -> Played:
    """Runs the trace: a member that is not loaded takes its preparation before it runs.

    Args:
        recorded: the trace.
        controller: chooses.
        first: member that is loaded at the beginning, beside the smallest.
        prepared_s: seconds that each member's preparation takes.
    """
    rounds = len(recorded.seconds)
    members, latency = np.empty(rounds, dtype=int), np.empty(rounds)
    active = target = recent = first
    ready, coming = 0.0, -1
    for t, now in enumerate(recorded.seconds):
        if hasattr(controller, "now"):
            controller.now = float(now)
        target = controller.choose(target)
        loaded = {0, recent} | ({coming} if coming >= 0 and now >= ready else set())
        if target in loaded:
            active = target
        else:
            if coming != target:
                coming, ready = target, float(now) + prepared_s[target]
            active = next((m for m in [controller.best_of(loaded)] if m is not None), active)
        recent = active or recent
        members[t], latency[t] = active, recorded.wall[t, active]
        controller.learn(active, recorded.wall[t, active], recorded.cpu[t, active], float(recorded.use[t]))
    return Played(members, latency)


def predictions(
    recorded: Recorded, controller: Ours, first: int, prepared_s: Sequence[float]
) -> list[tuple[float, ...]]:
    """How well the controller predicts the median latency of all members at the end of each step of the load.

    Returns:
        for each step: median relative error and Kendall's tau of the load model, and both of one ratio for all members.
    """
    members = controller.members
    alone = np.array([m.latency_ms for m in members])
    found = []
    ends = [*np.flatnonzero(np.diff(recorded.step)), len(recorded.seconds) - 1]
    begin = 0
    for end in ends:
        play(recorded.part(begin, end + 1), controller, first, prepared_s)
        near = slice(max(begin, end - NEAR_ROUNDS), end + 1)
        actual = np.median(recorded.wall[near], axis=0)
        last = controller.last
        for_all = alone * (last[1] / alone[last[0]])
        row: list[float] = []
        for predicted in (controller.replay.bounds_ms(0.5), for_all):
            row += [float(np.median(np.abs(predicted / actual - 1))), float(kendalltau(predicted, actual).statistic)]
        if end + 1 - begin >= NEAR_ROUNDS:
            found.append(tuple(row))
        begin = end + 1
    return found


def clairvoyant(recorded: Recorded, accuracy: np.ndarray, deadline_ms: float, quantile: float) -> Played:
    """Knows the load, and not the luck of a single inference.

    In each round the most accurate member whose latencies near by, in the same step of the load, meet the deadline with
    the probability; the smallest where there is none.
    """
    in_time = recorded.wall <= deadline_ms
    members = np.zeros(len(recorded.seconds), dtype=int)
    for t, now in enumerate(recorded.seconds):
        near = (np.abs(recorded.seconds - now) <= NEAR_S) & (recorded.step == recorded.step[t])
        fits = in_time[near].mean(axis=0) >= quantile
        members[t] = int(np.where(fits, accuracy, -np.inf).argmax()) if fits.any() else 0
    return Played(members, np.take_along_axis(recorded.wall, members[:, None], axis=1)[:, 0])


def one_late(recorded: Recorded, known: Played, first: int) -> Played:
    """Runs in each round what another controller ran in the round before: it knows the load one inference late."""
    members = np.concatenate(([first], known.members[:-1]))
    return Played(members, np.take_along_axis(recorded.wall, members[:, None], axis=1)[:, 0])


def judge(recorded: Recorded, played: Played, accuracy: np.ndarray, deadline_ms: float) -> Judged:
    """The measures of one controller."""
    late = played.latency > deadline_ms
    return Judged(
        missed=float(late.mean()),
        accuracy=float(accuracy[played.members].mean()),
        latency_ms=float(played.latency.mean()),
        p95_ms=float(np.quantile(played.latency, 0.95)),
        switches=int(np.count_nonzero(np.diff(played.members))),
        recovery=_recovery(recorded, late),
    )


def best_fixed(recorded: Recorded, accuracy: np.ndarray, deadline_ms: float, most_missed: float) -> int:
    """The most accurate member that misses at most such a share of the deadlines, or the one that misses least."""
    missed = (recorded.wall > deadline_ms).mean(axis=0)
    fits = missed <= most_missed
    return int(np.where(fits, accuracy, -np.inf).argmax()) if fits.any() else int(missed.argmin())


def _recovery(recorded: Recorded, late: np.ndarray) -> float:
    """Median over the steps of the inferences until some in a row are on time; all of them where it does not happen."""
    begins = [0, *(np.flatnonzero(np.diff(recorded.step)) + 1), len(late)]
    found = []
    for begin, end in pairwise(begins[1:]):
        runs = [t for t in range(begin, end - ON_TIME + 1) if not late[t : t + ON_TIME].any()]
        if end - begin >= 2 * ON_TIME:
            found.append(runs[0] - begin if runs else end - begin)
    return float(np.median(found)) if found else 0.0


def accuracies(members: Sequence[Member]) -> np.ndarray:
    """Of the members, in percent."""
    return np.array([member.accuracy for member in members])
