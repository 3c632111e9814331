"""``autotailor runtime``: serves a pool, asks a server, and shows a pool under load."""

from __future__ import annotations

import argparse

from autotailor.commands.runtime import ask, demo, search, serve, simulate


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``runtime`` to the commands."""
    parser = commands.add_parser(
        "runtime",
        help="run a pool: serve it, ask the server, see it under load",
        description="A pool holds SubNets that share one file of weights (rule pool). While it runs, the most accurate "
        "member that meets the deadline now is active. A pool runs on this machine, or on a device (serve "
        "--device), by a program and a library in C++, which are built once.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in (serve, ask, search, demo, simulate):
        action.add_actions(actions)
