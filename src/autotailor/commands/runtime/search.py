"""``autotailor runtime search RUN``: more members for a pool, for a load under which none of its members fits."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.commands.runtime.place import FOLDER, add_address, address_of, pool_folder
from autotailor.commands.terminal import given_path, say

if TYPE_CHECKING:
    from autotailor.ir.space.subnet import SubNet
    from autotailor.pool import making
    from autotailor.pool.under_load import Load
    from autotailor.prediction import Measured
    from autotailor.runs import Run
    from autotailor.serving import Client

MORE = 4
"""Members that are added at most."""
LOOK_S = 5.0
"""Seconds between two looks whether the server wants a search."""
WORK = ".members"
"""How the name of a folder beside the pool ends in which the command keeps exported members, also when interrupted."""
READ = ("configuration.json", "supernet.pt", "lut.csv", "accuracy.json", "candidates.csv", "confirmed.csv")
"""Artifacts of the run that a search reads."""
READ_WITHOUT_LABELS = ("compiled.pt",)
"""Artifacts that a search reads beside those where the pictures have no labels."""


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``search``."""
    parser = actions.add_parser(
        "search",
        help="more members, for the load that a server has now",
        description="Asks a server what its load is, and searches the run's SubNets for those that meet the server's "
        "deadline under it. They become members of the pool beside those that it has, and the server loads it without "
        "losing a request. Nothing is trained, and no latency measured, again; the search, the export of members and "
        "the evaluation of their accuracy take minutes at most on a small network.",
    )
    parser.add_argument(
        "folder", type=given_path, metavar="RUN", help="folder of the finished run, results/MODEL/DEVICE"
    )
    add_address(parser, "--at", "where the server listens")
    parser.add_argument(
        "--pool", type=given_path, metavar="FOLDER", help="the pool that the server serves (default: that of the run)"
    )
    parser.add_argument("--members", type=int, default=MORE, metavar="N", help=f"added at most (default: {MORE})")
    parser.add_argument(
        "--wait", action="store_true", help="begin only when no member of the pool has fitted for a minute"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Extends a pool, and lets its server load it.

    Raises:
        PoolError: an option is invalid, another process makes or extends the pool, no server answers, the server serves
            another run's pool, or no SubNet meets its deadline.
        RunError: an artifact of the run that is read is missing, the run has no device, or its pictures are gone.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("autotailor").setLevel(logging.INFO)
    from autotailor.pool.replacing import held, restore
    from autotailor.pool.under_load import Known
    from autotailor.serving import Client, PoolError

    if options.members < 1:
        raise PoolError(f"--members {options.members}: expected how many members may be added, 1 or more")
    address = address_of(options)
    pool = (pool_folder(options.pool) if options.pool else options.folder / FOLDER).resolve()
    restore(pool)
    training = training_of(pool)
    opened = open_for_search(options.folder, is_trained=training is not None)
    check_training(opened, pool, training)
    knowledge = known_of(opened, training)
    Known.read(pool, knowledge.net.space)  # what is no pool is not locked
    if options.wait:
        with Client(address) as client:
            check_server(client, opened)
            wait_for_want(client)
    with held(pool):
        members = Known.read(pool, knowledge.net.space).subnets
        with Client(address) as client:
            load = load_of(client, opened, knowledge.device.threads)
            served = len(client.status()["members"])
        if served != len(members):
            raise PoolError(
                f"{address}: the server has {served} members, and {pool} has {len(members)}: name the folder that it "
                "serves with --pool, or let the server load this one anew with `autotailor runtime reload`"
            )
        count = add_members(opened, knowledge, pool, load, options.members)
        with Client(address) as client:
            status = client.reload()
    if len(status["members"]) != count:
        raise PoolError(
            f"{address}: the server has {len(status['members'])} members and serves another folder than {pool}, which "
            f"has {count} now: copy this folder to the server's, and say `autotailor runtime reload`"
        )
    say(f"the server has loaded {count} members of {pool}")


def training_of(pool: Path) -> Mapping[str, Any] | None:
    """What ``pool.json`` says of the training of the members; None where there was none, or there is no such file."""
    from autotailor.artifacts import ArtifactError, read_json
    from autotailor.pool.making import TRAINING
    from autotailor.pool.writing import DOCUMENT

    try:
        training: Mapping[str, Any] | None = read_json(pool / DOCUMENT).get(TRAINING)
    except (ArtifactError, OSError):
        return None  # the reader of the members raises the error
    return training


def open_for_search(folder: Path, *, is_trained: bool = False) -> Run:
    """A run of which those artifacts are there that a search reads.

    Args:
        folder: of the run.
        is_trained: whether the members of its pool were trained on together.

    Raises:
        RunError: one is missing, or was made from another one than the one that is there now.
    """
    from autotailor.data.labels import labels_suffice
    from autotailor.runs import Run
    from autotailor.runs.folder import OF_POOL, open_folder

    needed = (*READ, *(OF_POOL if is_trained else ()))
    opened = Run(open_folder(folder, needed))
    if labels_suffice(opened.configuration["data"]):
        return opened
    return Run(open_folder(folder, (*needed, *READ_WITHOUT_LABELS)))


def check_training(opened: Run, pool: Path, training: Mapping[str, Any] | None) -> None:
    """Raises PoolError where the members of a pool have weights of another training than the run has now."""
    from autotailor.artifacts import read_json
    from autotailor.serving import PoolError

    if training is not None and training != read_json(opened.folder.file("pool_training.json")):
        raise PoolError(
            f"{pool}: its members have the weights of another training than {opened.folder.file('pool_supernet.pt')}; "
            "make the pool anew with the rule pool"
        )


def known_of(opened: Run, training: Mapping[str, Any] | None = None) -> making.Run:
    """What a run knows of its SubNets, with the weights of its pool; raises RunError where it has no device.

    Args:
        opened: the run.
        training: of the pool's members; its results are those of other weights than the run has evaluated.
    """
    import autotailor
    from autotailor.pool import making
    from autotailor.runs import RunError

    lut, device = opened.lut, opened.device
    if lut is None or device is None:
        raise RunError(f"{opened.folder.path}: the run has no device, and thus no pool; name a run with a device")
    making.check_device(device)
    if training is None:
        return making.Run(opened.net, None, opened.accuracy, opened.tried.accuracies, lut, device)
    net = autotailor.load(opened.folder.file("pool_supernet.pt"))
    return making.Run(net, None, opened.accuracy, {}, lut, device, training)


def wait_for_want(client: Client) -> None:
    """Waits until no member of a server's pool has fitted for long."""
    if not client.status()["wants_search"]:
        say("waiting until no member of the pool has fitted for a minute")
        while not client.status()["wants_search"]:
            time.sleep(LOOK_S)


def check_server(client: Client, opened: Run) -> None:
    """Raises PoolError where a server serves the pool of another run."""
    from autotailor.serving import PoolError

    status = client.status()
    device = opened.device.name if opened.device else opened.folder.device
    served, ours = (status["model"], status["device"]), (opened.folder.model, device)
    if served != ours:
        raise PoolError(
            f"{client.address}: the server serves {' on '.join(served)}, and the run is of {' on '.join(ours)}: name "
            "the run of the pool"
        )


def load_of(client: Client, opened: Run, threads: int) -> Load:
    """The load of a server of a run's pool.

    Args:
        client: of the server.
        opened: the run.
        threads: that compute an inference.

    Raises:
        PoolError: the server serves the pool of another run.
    """
    from autotailor.pool.under_load import Load

    check_server(client, opened)
    load = Load.of_status(client.status(), threads)
    compute, memory, fixed = load.slowdown
    say(
        f"under load: compute {compute:.2f}, memory {memory:.2f}, fixed costs {fixed:.2f} times as slow; a member may "
        f"take {load.limit_ms:.3g} ms",
    )
    return load


def add_members(opened: Run, knowledge: making.Run, folder: Path, load: Load, count: int) -> int:
    """Adds members to a pool of a run.

    Args:
        opened: the run.
        knowledge: what the run knows of its SubNets.
        folder: of the pool, absolute.
        load: under which the members meet the deadline.
        count: of new members, at most.

    Returns:
        The number of all members.

    Raises:
        PoolError: no SubNet meets the deadline, or all that do are members.
        RunError: the run's pictures are gone.
    """
    import shutil

    from autotailor import accuracy, search
    from autotailor.compute.accelerator import resolve
    from autotailor.pool import making, under_load
    from autotailor.pool.config import PoolConfig
    from autotailor.runs.choice import accuracies_of
    from autotailor.runs.export import data_of, surroundings

    sections = opened.configuration
    config, work = PoolConfig.from_section(sections["pool"]), folder.parent / f".{folder.name}{WORK}"
    with surroundings(opened):
        offered = under_load.find_members(
            knowledge, load, search.SearchConfig.from_section(sections["search"]), count, config.slowdown
        )
        splits = data_of(opened)
        origin = making.origin_of(opened.folder.model, knowledge.device, config, splits.preparation, splits.test.task)
        module = knowledge.net.module().eval().to(resolve(sections["accelerator"]))
        calibration = accuracy.CalibrationConfig.from_section(sections["finetune"]["calibration"])
        members = work / opened.folder.provenance.key
        export = making.exporter(knowledge.net, module, splits, calibration, members)

        def evaluate(subnets: Sequence[SubNet]) -> Mapping[str, Measured]:
            trained = None if knowledge.training is None else knowledge.net
            return accuracies_of(opened, subnets, splits, members.with_suffix(".jsonl"), trained)

        subnets = under_load.extend(folder, knowledge, load, offered, origin, export, evaluate)
    shutil.rmtree(work)
    return len(subnets)
