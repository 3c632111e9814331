"""``autotailor runtime demo POOL``: a pool under load that the command makes, drawn live and on a page afterwards."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotailor.commands.runtime.place import add_pool, pool_folder
from autotailor.commands.terminal import given_path, say

SECONDS = 16.0
PAGE, TRACE = "runtime.html", "runtime.csv"


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``demo``."""
    parser = actions.add_parser(
        "demo",
        help="see a pool under load",
        description="Runs a pool on one core of this machine while processes compete for it: none, one, three, none. "
        f"Draws live which member is active, latency against the deadline and accuracy paid; then writes {PAGE} and "
        f"{TRACE}, one line for each inference. It takes as long as --seconds says; its processes always end.",
    )
    add_pool(parser)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of all phases together")
    parser.add_argument(
        "--burdens", default="0,1,3,0", metavar="N,N,...", help="competing processes in each phase, at most 16"
    )
    parser.add_argument(
        "--kind",
        choices=("compute", "memory"),
        default="compute",
        help="what they do: compute on the same core, or copy memory",
    )
    parser.add_argument(
        "--deadline-ms",
        type=float,
        metavar="MS",
        help="of one inference (default: 1.5 times what the largest takes here)",
    )
    parser.add_argument("--rate", type=float, default=0.0, help="inferences a second (default: without a pause)")
    parser.add_argument(
        "--output", type=given_path, default=Path(), metavar="FOLDER", help="of page and trace (default: .)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Runs the demonstration.

    Raises:
        PoolError: the pool cannot be read, or an option is invalid.
    """
    from autotailor.artifacts import atomic
    from autotailor.commands.runtime.live import Live
    from autotailor.commands.runtime.page import write_page
    from autotailor.serving import Service
    from autotailor.serving.demo.drive import (
        ROOM,
        Burdens,
        drive,
        phases,
        pictures_for,
        pinned_to_one_core,
        unloaded_ms,
    )
    from autotailor.serving.demo.trace import write_csv

    plan = phases(options.seconds, burdens_of(options.burdens))
    check_rate(options.rate)
    make_folder(options.output)
    folder, samples = pool_folder(options.pool), []
    with pinned_to_one_core() as core, Burdens(options.seconds + 60, options.kind) as burdens:
        deadline_ms = options.deadline_ms
        if deadline_ms is None:
            with Service.of(folder) as service:
                deadline_ms = ROOM * unloaded_ms(service, pictures_for(service)[0])
        with Service.of(folder, deadline_ms) as service:
            with Live(service, plan) as live:
                for sample in drive(service, burdens, plan, pictures_for(service), options.rate):
                    samples.append(sample)
                    live.show(sample)
            status = service.status()
    with atomic(options.output / TRACE) as temporary:
        write_csv(samples, temporary)
    write_page(samples, status, core, options.output / PAGE)
    say(f"page: {options.output / PAGE}, trace: {options.output / TRACE}")


def check_rate(rate: float) -> None:
    """Raises PoolError unless a number of inferences a second is finite and not negative."""
    from autotailor.serving import PoolError

    if not 0 <= rate < float("inf"):
        raise PoolError(f"--rate {rate:g}: expected inferences a second, or 0 for no pause between them")


def make_folder(folder: Path) -> None:
    """Makes the folder of page and trace before the demonstration, which nobody wants to see twice.

    Raises:
        PoolError: the folder cannot be made.
    """
    from autotailor.serving import PoolError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PoolError(f"--output {folder}: the folder cannot be made ({error.strerror}); name another one") from error


def burdens_of(text: str) -> tuple[int, ...]:
    """``0,1,3,0``.

    Raises:
        PoolError: the text is no list of numbers from 0 to 16.
    """
    from autotailor.serving import PoolError
    from autotailor.serving.demo.drive import MOST

    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) <= MOST for word in words):
        raise PoolError(
            f"--burdens {text}: expected numbers from 0 to {MOST} with commas between them, such as 0,1,3,0"
        )
    return tuple(int(word) for word in words)
