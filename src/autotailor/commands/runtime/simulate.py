"""``autotailor runtime simulate RUN/exits``: what a pool with exits would answer to pictures of changing difficulty."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from autotailor.commands import answer
from autotailor.commands.runtime.place import add_pool, pool_folder

if TYPE_CHECKING:
    from autotailor.serving.streams import Answered, Passage, Told

PICTURES = 1000
HARD = "0.2,0.8,0.2"
SHOWN = 0.005
"""Shares of exits below this are not printed."""


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``simulate``."""
    parser = actions.add_parser(
        "simulate",
        help="what a pool with exits would answer to easy and hard pictures",
        description="Replays a stream of validation pictures, whose difficulty changes, through a pool with exits "
        "(results/MODEL/DEVICE/exits): how many answers are in time, how accurate they are, and which exits give "
        "them. No network runs, so that it takes seconds and the answer is the same each time.",
    )
    add_pool(parser)
    parser.add_argument(
        "--hard", default=HARD, metavar="SHARE,...", help=f"of hard pictures, passage by passage (default: {HARD})"
    )
    parser.add_argument(
        "--slowdown",
        default="1",
        metavar="FACTOR,...",
        help="of the machine by its load in each passage, or in all (default: 1)",
    )
    parser.add_argument(
        "--pictures", type=int, default=PICTURES, metavar="N", help=f"of each passage (default: {PICTURES})"
    )
    parser.add_argument(
        "--deadline-ms", type=float, metavar="MS", help="of a picture (default: 1.25 times the largest's latency)"
    )
    parser.add_argument(
        "--thresholds", default="", metavar="NAME", help="the name of a budget, or guaranteed (default: deadlines only)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the pictures that are drawn")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Replays the stream and prints what came of it.

    Raises:
        PoolError: the pool cannot be read, nothing is known of its exits, or an option is invalid.
    """
    from autotailor.serving import PoolError
    from autotailor.serving.files import open_pool
    from autotailor.serving.streams import read_known, replay_stream

    folder = pool_folder(options.pool)
    members = open_pool(folder).index.members
    passages = passages_of(options.hard, options.slowdown, options.pictures)
    names = sorted({name for member in members for name, _ in member.thresholds})
    if options.thresholds and options.thresholds.replace(" ", "") not in names:
        raise PoolError(f"--thresholds {options.thresholds}: the pool has those of {', '.join(names) or 'nothing'}")
    deadline_ms = options.deadline_ms
    if deadline_ms is None:
        deadline_ms = 1.25 * max(member.latency_ms for member in members)
    known = read_known(folder.parent, members)
    found = replay_stream(members, known, passages, deadline_ms, options.thresholds, options.seed)
    rows = _rows(passages, found)
    if options.json:
        answer.print_json({"deadline_ms": deadline_ms, "passages": [_plain(*row) for row in rows]})
    else:
        _show(rows, deadline_ms)


def passages_of(hard: str, slowdown: str, pictures: int) -> tuple[Passage, ...]:
    """``0.2,0.8`` and ``1`` as passages.

    Raises:
        PoolError: a text is no list of numbers, or the lists differ in length.
    """
    from autotailor.serving import PoolError
    from autotailor.serving.streams import Passage

    shares, factors = _numbers("--hard", hard), _numbers("--slowdown", slowdown)
    factors = factors * len(shares) if len(factors) == 1 else factors
    if len(factors) != len(shares):
        raise PoolError(f"--slowdown {slowdown}: expected one factor, or one for each of the {len(shares)} passages")
    return tuple(Passage(pictures, share, factor) for share, factor in zip(shares, factors, strict=True))


def _numbers(option: str, text: str) -> list[float]:
    from autotailor.serving import PoolError

    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise PoolError(f"{option} {text}: expected numbers with commas between them, such as {HARD}") from error


def _rows(passages: Sequence[Passage], found: Sequence[Answered]) -> list[tuple[str, float, Told]]:
    """Name, slowdown and sums of each passage, and of all together behind them (of one passage, that alone)."""
    from autotailor.serving.streams import summed

    parts = [[each for each in found if each.passage == number] for number in range(len(passages))]
    rows = [
        (str(n), each.slowdown, summed(part)) for n, (each, part) in enumerate(zip(passages, parts, strict=True), 1)
    ]
    mean = sum(each.pictures * each.slowdown for each in passages) / sum(each.pictures for each in passages)
    return [*rows, ("all", mean, summed(found))] if len(rows) > 1 else rows


def _plain(name: str, slowdown: float, told: Told) -> dict[str, Any]:
    exits = [{"member": member, "exit": exit_, "share": share} for (member, exit_), share in told.exits.items()]
    return {"passage": name, "slowdown": slowdown, **asdict(told), "exits": exits}


def _show(rows: Sequence[tuple[str, float, Told]], deadline_ms: float) -> None:
    """Prints a table for people."""
    numbers = ("hard", "slowdown", "in time", "right", "mean ms")
    made = answer.table(
        f"a deadline of {deadline_ms:.4g} ms, without running a network",
        "passage",
        *numbers,
        "left at",
        numbers=numbers,
    )
    for name, slowdown, told in rows:
        some = ((place, share) for place, share in told.exits.items() if share >= SHOWN)
        left = ", ".join(f"{member} {exit_} {share:.0%}" for (member, exit_), share in some)
        shares = (f"{each:.1%}" for each in (told.in_time, told.accuracy))
        made.add_row(name, f"{told.hard:.0%}", f"{slowdown:g}", *shares, f"{told.latency_ms:.3f}", left)
    answer.console().print(made)
