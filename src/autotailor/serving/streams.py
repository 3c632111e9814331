"""Streams of pictures, easy ones and hard ones, replayed through a pool whose members have exits.

What the exits of each member answer to the validation pictures is known (``answers.npz`` of the rule ``exits``). A
stream draws from these pictures: a picture is hard where it is among the half of which all exits together are least
sure. Members are chosen as the server chooses (``Replay``), and a picture leaves as it leaves there: at the first exit
that is as sure as its threshold, or at the deadline with the last exit that is done. The first exit is always waited
for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.serving.errors import PoolError
from autotailor.serving.files import Member
from autotailor.serving.files.exits import ANSWERS, LAST
from autotailor.serving.replay import Replay

SPREAD = 0.05
"""Standard deviation of the logarithm of a latency, from one picture to the next."""


@dataclass(frozen=True)
class Passage:
    """A part of a stream.

    Attributes:
        pictures: how many.
        hard: share of hard ones, 0 to 1.
        slowdown: how many times its latency without load an inference takes.
    """

    pictures: int
    hard: float
    slowdown: float = 1.0

    def __post_init__(self) -> None:
        if self.pictures < 1 or not 0 <= self.hard <= 1 or not 0 < self.slowdown < float("inf"):
            raise PoolError(
                f"a passage of {self.pictures} pictures, {self.hard:g} of them hard, at {self.slowdown:g} times their "
                "latency: expected pictures, a share from 0 to 1, and a factor above 0"
            )


@dataclass(frozen=True, eq=False)
class Known:
    """What a member's exits answer to the same pictures.

    Attributes:
        confidence: how sure each exit is, ``[n, exits]``.
        right: how right each answer is, the member's own last, 0 to 1: ``[n, exits + 1]``.
    """

    confidence: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Answered:
    """One picture of a replayed stream.

    Attributes:
        passage: number of its passage.
        is_hard: whether it was drawn from the hard ones.
        member: that ran.
        exit: that answered; ``last`` for the member's own answer.
        latency_ms: until the answer.
        in_time: whether that was before the deadline.
        right: how right the answer is.
    """

    passage: int
    is_hard: bool
    member: str
    exit: str
    latency_ms: float
    in_time: bool
    right: float


@dataclass(frozen=True)
class Told:
    """Some pictures together: shares from 0 to 1, the mean latency, and the share of pictures by member and exit."""

    pictures: int
    hard: float
    in_time: float
    accuracy: float
    latency_ms: float
    exits: Mapping[tuple[str, str], float]


def read_known(folder: Path, members: Sequence[Member]) -> dict[str, Known]:
    """The known answers of a pool's members, from the folder ``exits`` of a run.

    Raises:
        PoolError: a member has no such file, so that nothing is known of its exits.
    """
    answers = {}
    for member in members:
        path = folder / member.name / ANSWERS
        if not path.is_file():
            raise PoolError(
                f"{path}: no such file, so that it is not known what the exits of {member.name} answer; name the "
                "folder exits of a finished run, results/MODEL/DEVICE/exits"
            )
        with np.load(path) as arrays:
            answers[member.name] = Known(arrays["validation_confidence"], arrays["validation_right"])
    return answers


def hard_pictures(answers: Mapping[str, Known]) -> npt.NDArray[np.bool_]:
    """Which pictures are hard, ``[n]``: the half with the lowest mean rank of confidence over all exits.

    Raises:
        PoolError: no member has exits, or there are too few pictures.
    """
    columns = [column for each in answers.values() for column in each.confidence.T]
    if not columns or len(columns[0]) < 2:
        raise PoolError("no member has exits with answers, which say how hard pictures are; make some (space.exits)")
    ranks = np.mean([np.argsort(np.argsort(column, kind="stable")) for column in columns], axis=0)
    hard = np.zeros(len(ranks), dtype=bool)
    hard[np.argsort(ranks, kind="stable")[: len(ranks) // 2]] = True
    return hard


def replay_stream(
    members: Sequence[Member],
    answers: Mapping[str, Known],
    passages: Sequence[Passage],
    deadline_ms: float,
    thresholds: str = "",
    seed: int = 0,
) -> list[Answered]:
    """What a pool would answer to a stream.

    Args:
        members: of the pool.
        answers: by name of the member.
        passages: of the stream.
        deadline_ms: of each picture, from its arrival; a picture arrives when the one before is answered.
        thresholds: name of those at which pictures leave; a member without them, and an empty name: at deadlines only.
        seed: of the pictures that are drawn, and of their latencies.

    Raises:
        PoolError: nothing is known of exits, or the deadline is not positive.
    """
    if not 0 < deadline_ms < float("inf"):
        raise PoolError(f"a deadline of {deadline_ms:g} ms, expected some")
    random, hard = np.random.default_rng(seed), hard_pictures(answers)
    halves = np.flatnonzero(~hard), np.flatnonzero(hard)
    places = [(member, number) for member in members for number in range(len(member.exits) + 1)]
    rows = {(member.name, number): row for row, (member, number) in enumerate(places)}
    replay = Replay([_until(member, number) for member, number in places], deadline_ms=deadline_ms)
    row, seconds, answered = len(places) - 1, 0.0, list[Answered]()
    for part, passage in enumerate(passages):
        for is_hard in random.random(passage.pictures) < passage.hard:
            replay.at(seconds)
            row = replay.choose(row).member
            member, own = places[row][0], answers[places[row][0].name]
            picture = random.choice(halves[int(is_hard)])
            done = _reach(member) * passage.slowdown * np.exp(SPREAD * random.standard_normal())
            number, took = _leaves(done, own.confidence[picture], _limits(member, thresholds), deadline_ms)
            replay.ran(rows[member.name, number], float(done[number]), float(done[number]))
            seconds += took / 1e3
            name = member.exits[number].name if number < len(member.exits) else LAST
            right = float(own.right[picture, number])
            answered.append(Answered(part, bool(is_hard), member.name, name, took, took <= deadline_ms, right))
    return answered


def _until(member: Member, number: int) -> Member:
    """A member that ends at one of its exits, in the eyes of the choice."""
    if number == len(member.exits):
        return member
    end = member.exits[number]
    compute, memory, fixed = (part * end.latency_ms / member.latency_ms for part in member.split_ms)
    return replace(member, accuracy=end.accuracy, split_ms=(compute, memory, fixed))


def _reach(member: Member) -> npt.NDArray[np.float64]:
    """Milliseconds from the input to each answer, ``[exits + 1]``."""
    return np.array([*(each.latency_ms for each in member.exits), member.latency_ms])


def _limits(member: Member, thresholds: str) -> npt.NDArray[np.float64]:
    """The confidence from which a picture leaves at each exit, ``[exits]``; infinite where none does."""
    own = dict(member.thresholds).get(thresholds.replace(" ", ""), (None,) * len(member.exits))
    return np.array([np.inf if each is None else each for each in own])


def _leaves(
    done: npt.NDArray[np.float64],
    confidence: npt.NDArray[np.float64],
    limits: npt.NDArray[np.float64],
    deadline_ms: float,
) -> tuple[int, float]:
    """The exit that answers, and after how many milliseconds."""
    sure = int(np.argmax([*(confidence >= limits), True]))
    if done[sure] <= deadline_ms:
        return sure, float(done[sure])
    last = max(int(np.searchsorted(done, deadline_ms, "right")) - 1, 0)
    return last, float(max(done[last], deadline_ms))


def summed(answers: Sequence[Answered]) -> Told:
    """Some pictures, at least one, together."""
    left = Counter((each.member, each.exit) for each in answers)
    return Told(
        pictures=len(answers),
        hard=float(np.mean([each.is_hard for each in answers])),
        in_time=float(np.mean([each.in_time for each in answers])),
        accuracy=float(np.mean([each.right for each in answers])),
        latency_ms=float(np.mean([each.latency_ms for each in answers])),
        exits={place: count / len(answers) for place, count in sorted(left.items())},
    )
