"""``python -m autotailor lut``: lists, exports, imports and removes the measured operators of the LUT store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from autotailor.commands.terminal import given_path, say, terminal
from autotailor.ir.errors import AutoTailorError, printable

if TYPE_CHECKING:
    from autotailor.profiling.table.store import Store


class LutCommandError(AutoTailorError):
    """The options of ``lut`` are invalid, or the store does not hold what they name."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``lut`` to the commands."""
    parser = commands.add_parser(
        "lut",
        help="list, export, import or remove measured operators",
        description="Lists the devices of the LUT store, exports all operators of a device as CSV, imports such a "
        "table (runs on a device with the same fingerprint then measure only operators that the table lacks), or "
        "removes measurements.",
    )
    parser.add_argument("--store", type=given_path, default=Path("luts"), metavar="FOLDER", help="profile.store (luts)")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    actions.add_parser("list", help="the devices of the store").set_defaults(run=show)
    export = actions.add_parser("export", help="write a device's operators")
    export.add_argument("device", help="its fingerprint, or the beginning of it")
    export.add_argument("path", type=given_path, metavar="TABLE.csv")
    export.set_defaults(run=write)
    taken = actions.add_parser("import", help="add a table; measurements made here take precedence")
    taken.add_argument("path", type=given_path, metavar="TABLE.csv")
    taken.set_defaults(run=read)
    removed = actions.add_parser(
        "remove",
        help="remove measurements of a device, of operators, or of an imported table",
        description="Shows the measurements that match all options, asks, and removes them. Runs measure them again.",
    )
    removed.add_argument("device", nargs="?", help="its fingerprint, or the beginning of it; default: all devices")
    removed.add_argument("--operator", metavar="KIND|ID", help="a kind of operators (Conv), or the beginning of an id")
    removed.add_argument("--from", dest="source", metavar="TABLE.csv", help="only rows imported from this file")
    removed.add_argument("--imported", action="store_true", help="only imported rows, from any file")
    removed.add_argument("--yes", action="store_true", help="do not ask")
    removed.set_defaults(run=remove)


def show(options: argparse.Namespace) -> None:
    """Prints a line for each device; raises LutCommandError where the store is missing."""
    from rich.markup import escape
    from rich.table import Table

    columns = ("fingerprint", "device", "runtime", "operators", "last (UTC)")
    table, devices = Table(*columns), _store(options.store).devices()
    for device in devices:
        facts = device.fingerprint.facts
        hardware, runtime = facts.get("hardware", {}), facts.get("runtime", {})
        what = hardware.get("model") or hardware.get("cpu") or hardware.get("machine") or "?"
        version = f"{runtime.get('name')} {runtime.get('version')}, threads {facts.get('threads')}"
        last = device.last[: len("2026-01-31T12:00")].replace("T", " ")
        table.add_row(
            device.fingerprint.id,
            escape(printable(what)),
            escape(printable(f"{version}, {facts.get('precision')}")),
            f"{device.operators:,}",
            last,
        )
    terminal().print(table)
    for device in devices:
        for source, count in device.sources.items():
            origin = printable(source or "an unknown file")
            say(f"{device.fingerprint.id}: {count:,} operators were imported from {origin}")


def write(options: argparse.Namespace) -> None:
    """Writes the CSV of one device; raises LutCommandError where not exactly one device of the store matches."""
    store = _store(options.store)
    chosen = _chosen(store, options.device)
    lut = store.lut(chosen)
    try:
        options.path.parent.mkdir(parents=True, exist_ok=True)
        lut.write(options.path)
    except OSError as error:
        raise LutCommandError(f"{options.path}: cannot be written ({error.strerror}); name another file") from error
    say(f"{options.path}: {len(lut):,} operators of device {chosen}")


def read(options: argparse.Namespace) -> None:
    """Imports a CSV into the store, which is made if missing; raises LUTError where the CSV is not a LUT."""
    from autotailor.profiling.table.lut import LUT
    from autotailor.profiling.table.store import Store

    lut = LUT.read(options.path)
    counted = Store(options.store).merge(lut, str(options.path.resolve()))
    imported = f"{len(lut):,} operators of device {lut.fingerprint} imported, {counted:,} of them are new"
    say(f"{options.path}: {imported}")


def remove(options: argparse.Namespace) -> None:
    """Shows the measurements that match the options, asks the user, and removes them.

    Raises:
        LutCommandError: no option selects measurements, no measurement matches, or the user cannot be asked.
    """
    from autotailor.profiling.table.removal import Remover, Selection

    if not (options.device or options.operator or options.source or options.imported):
        raise LutCommandError(
            "lut remove: name a device, --operator, --from or --imported; see `python -m autotailor lut list`"
        )
    store = _store(options.store)
    devices = None if options.device is None else [_chosen(store, options.device)]
    remover = Remover(store, Selection(devices, options.operator, options.source, options.imported))
    removals = remover.removals()
    if not removals:
        raise LutCommandError(f"LUT store {store.path}: no measurement matches; see `python -m autotailor lut list`")
    for part in removals:
        names = printable(", ".join(Path(source).name or "an unknown file" for source in part.sources))
        tables = f"{part.imported:,} rows imported from {names}" if part.imported else "no imported rows"
        say(
            f"device {part.fingerprint}: {part.operators:,} operators: {part.visits:,} measurements made here, {tables}"
        )
    if not options.yes and not _is_wanted():
        say("nothing was removed")
        return
    remover.remove()
    say("removed; `autotailor run model=NAME device=NAME -- --forcerun profile` measures what a model needs again")


def _is_wanted() -> bool:
    """Asks the user; raises LutCommandError where standard input is closed."""
    try:
        return input("Remove them? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError as error:
        raise LutCommandError(
            "lut remove: nothing was removed, because nobody can be asked here; add --yes to remove without a question"
        ) from error


def _chosen(store: Store, beginning: str) -> str:
    """The device whose fingerprint begins so; raises LutCommandError where not exactly one device does."""
    fingerprints = store.fingerprints()
    chosen = [fingerprint for fingerprint in fingerprints if fingerprint.startswith(beginning)]
    if len(chosen) != 1:
        raise LutCommandError(
            f"LUT store {store.path}: {len(chosen)} devices begin with {beginning!r}; known are: "
            f"{', '.join(fingerprints) or 'none'}; see `python -m autotailor lut list`"
        )
    return chosen[0]


def _store(folder: Path) -> Store:
    from autotailor.profiling.table.database import FILE
    from autotailor.profiling.table.store import Store

    if not (folder.expanduser() / FILE).exists():
        raise LutCommandError(f"--store {folder}: the folder holds no LUT store; name the folder of profile.store")
    return Store(folder)
