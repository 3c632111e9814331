"""``autotailor runtime search RUN``: more members for a pool, for a load under which none of its members fits."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from autotailor.commands.runtime.place import FOLDER, add_address, address_of

if TYPE_CHECKING:
    from autotailor.pool.under_load import Load
    from autotailor.runs import Run
    from autotailor.runtime import Client

MORE = 4
"""Members that are added at most."""
LOOK_S = 5.0
"""Seconds between two looks whether the server wants a search."""
WORK = ".members"
"""Folder of exported members beside the pool, in which an interrupted command goes on."""


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``search``."""
    parser = actions.add_parser(
        "search",
        help="more members, for the load that a server has now",
        description="Asks a server what its load is, and searches the run's SubNets for those that meet the server's "
        "deadline under it. They become members of the pool beside those that it has, and the server loads it without "
        "losing a request. Nothing is trained or measured again; the search and the export of the members take minutes "
        "at most on a small network.",
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="folder of the finished run, results/MODEL/DEVICE")
    add_address(parser, "--at", "where the server listens")
    parser.add_argument(
        "--pool", type=Path, metavar="FOLDER", help="the pool that the server serves (default: that of the run)"
    )
    parser.add_argument("--members", type=int, default=MORE, metavar="N", help=f"added at most (default: {MORE})")
    parser.add_argument(
        "--wait", action="store_true", help="begin only when no member of the pool has fitted for a minute"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Extends a pool, and lets its server load it.

    Raises:
        PoolError: no server answers, the server serves another run's pool, or no SubNet meets its deadline.
        RunError: the run is not finished, or its pictures are gone.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("autotailor").setLevel(logging.INFO)
    import autotailor
    from autotailor.runtime import Client, PoolError

    opened, address = autotailor.open_run(options.folder), address_of(options)
    pool = (options.pool or opened.folder.path / FOLDER).resolve()
    with Client(address) as client:
        load = load_of(client, opened, wait=options.wait)
    count = add_members(opened, pool, load, options.members)
    with Client(address) as client:
        status = client.reload()
    if len(status["members"]) != count:
        raise PoolError(
            f"{address}: the server has {len(status['members'])} members and serves another folder than {pool}, which "
            f"has {count} now: copy this folder to the server's, and say `autotailor runtime reload`"
        )
    print(f"the server has loaded {count} members of {pool}", flush=True)


def load_of(client: Client, opened: Run, *, wait: bool) -> Load:
    """The load of a server of a run's pool.

    Args:
        client: of the server.
        opened: the run.
        wait: whether to wait until no member has fitted for long.

    Raises:
        PoolError: the server serves the pool of another run.
    """
    from autotailor.pool.under_load import Load
    from autotailor.runtime import PoolError

    status = client.status()
    device = opened.device.name if opened.device else opened.folder.device
    served, asked = (status["model"], status["device"]), (opened.folder.model, device)
    if served != asked:
        raise PoolError(
            f"{client.address}: the server serves {' on '.join(served)}, and the run is of {' on '.join(asked)}: name "
            "the run of the pool"
        )
    if wait and not status["wants_search"]:
        print("waiting until no member of the pool has fitted for a minute", flush=True)
    while wait and not status["wants_search"]:
        time.sleep(LOOK_S)
        status = client.status()
    load = Load.of_status(status)
    compute, memory, fixed = load.slowdown
    print(
        f"under load: compute {compute:.2f}, memory {memory:.2f}, fixed costs {fixed:.2f} times as slow; a member may "
        f"take {load.limit_ms:.3g} ms",
        flush=True,
    )
    return load


def add_members(opened: Run, folder: Path, load: Load, count: int) -> int:
    """Adds members to a pool of a run.

    Args:
        opened: the run.
        folder: of the pool, absolute.
        load: under which the members meet the deadline.
        count: of new members, at most.

    Returns:
        The number of all members.

    Raises:
        PoolError: no SubNet meets the deadline, or all that do are members.
        RunError: the run has no device, or its pictures are gone.
    """
    import shutil

    from autotailor import accuracy, search
    from autotailor.compute.accelerator import resolve
    from autotailor.pool import making, under_load
    from autotailor.pool.config import PoolConfig
    from autotailor.runs import RunError
    from autotailor.runs.export import data_of, surroundings

    lut, device, sections = opened.lut, opened.device, opened.configuration
    if lut is None or device is None:
        raise RunError(f"{opened.folder.path}: the run has no device, and thus no pool; name a run with a device")
    config = PoolConfig.from_section(sections["pool"])
    known = making.Run(opened.net, opened.pareto, opened.accuracy, opened.tried.accuracies, lut, device)
    with surroundings(opened):
        found = under_load.find_members(
            known, load, search.SearchConfig.from_section(sections["search"]), count, config.slowdown
        )
        splits = data_of(opened)
        origin = making.origin_of(opened.folder.model, device, config, splits.preparation)
        module = opened.net.module().eval().to(resolve(sections["accelerator"]))
        calibration = accuracy.CalibrationConfig.from_section(sections["finetune"]["calibration"])
        export = making.exporter(opened.net, module, splits, calibration, folder.parent / WORK)
        subnets = under_load.extend(folder, known, load, found, origin, export)
    shutil.rmtree(folder.parent / WORK)
    return len(subnets)
