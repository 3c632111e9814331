"""``python -m autotailor lut``: what the LUT store knows, as tables that go from one person to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.profiling.table.store import Store


class LutCommandError(AutoTailorError):
    """The command line asks for something that the store does not have."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``lut`` to the commands."""
    parser = commands.add_parser(
        "lut",
        help="list, export, import or remove measured operators",
        description="Lists the devices that the LUT store knows, exports all operators of one as CSV, imports such a "
        "table (runs on a device with the same fingerprint then measure only what is not in it), or removes some.",
    )
    parser.add_argument("--store", type=Path, default=Path("luts"), metavar="FOLDER", help="profile.store (luts)")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    actions.add_parser("list", help="the devices of the store").set_defaults(run=show)
    export = actions.add_parser("export", help="write a device's operators")
    export.add_argument("device", help="its fingerprint, or the beginning of it")
    export.add_argument("path", type=Path, metavar="TABLE.csv")
    export.set_defaults(run=write)
    taken = actions.add_parser("import", help="take a table in; what is measured here counts more")
    taken.add_argument("path", type=Path, metavar="TABLE.csv")
    taken.set_defaults(run=read)
    removed = actions.add_parser(
        "remove",
        help="take measurements out: of a device, of operators, or of an imported table",
        description="Shows what answers to all that is given, asks, and removes it. Runs measure it again.",
    )
    removed.add_argument("device", nargs="?", help="its fingerprint, or the beginning of it; without: any device")
    removed.add_argument("--operator", metavar="KIND|ID", help="a kind of operators (Conv), or the beginning of an id")
    removed.add_argument("--from", dest="source", metavar="TABLE.csv", help="only rows imported from this file")
    removed.add_argument("--imported", action="store_true", help="only imported rows, from whatever file")
    removed.add_argument("--yes", action="store_true", help="do not ask")
    removed.set_defaults(run=remove)


def show(options: argparse.Namespace) -> None:
    """Prints a line for each device; raises LutCommandError where there is no store."""
    from rich.console import Console
    from rich.table import Table

    table, devices = Table("fingerprint", "device", "runtime", "operators", "last"), _store(options.store).devices()
    for known in devices:
        facts = known.fingerprint.facts
        hardware, runtime = facts.get("hardware", {}), facts.get("runtime", {})
        what = hardware.get("model") or hardware.get("cpu") or hardware.get("machine") or "?"
        version = f"{runtime.get('name')} {runtime.get('version')}, threads {facts.get('threads')}"
        table.add_row(
            known.fingerprint.id, str(what), f"{version}, {facts.get('precision')}", f"{known.operators:,}", known.last
        )
    Console().print(table)
    for known in devices:
        for source, count in known.sources.items():
            print(f"{known.fingerprint.id}: {count:,} of them imported from {source or 'a file that is not known'}")


def write(options: argparse.Namespace) -> None:
    """Writes the CSV of one device; raises LutCommandError where the store does not know just one such."""
    store = _store(options.store)
    chosen = _chosen(store, options.device)
    lut = store.lut(chosen)
    try:
        options.path.parent.mkdir(parents=True, exist_ok=True)
        lut.write(options.path)
    except OSError as error:
        raise LutCommandError(f"{options.path}: cannot be written ({error.strerror}); name another file") from error
    print(f"{options.path}: {len(lut):,} operators of device {chosen}")


def read(options: argparse.Namespace) -> None:
    """Imports a CSV; the store is made where there is none. Raises LUTError where it is no table of a device."""
    from autotailor.profiling.table.lut import LUT
    from autotailor.profiling.table.store import Store

    lut = LUT.read(options.path.expanduser())
    counted = Store(options.store).merge(lut, str(options.path.expanduser().resolve()))
    print(f"{options.path}: {len(lut):,} operators of device {lut.fingerprint} imported, {counted:,} of them are new")


def remove(options: argparse.Namespace) -> None:
    """Removes measurements that are named, once they were shown and it was said that they should go.

    Raises:
        LutCommandError: nothing is named, nothing answers to it, or nobody can be asked.
    """
    from autotailor.profiling.table.removal import Remover, Selection

    if not (options.device or options.operator or options.source or options.imported):
        raise LutCommandError(
            "lut remove: name a device, --operator, --from or --imported; see `python -m autotailor lut list`"
        )
    store = _store(options.store)
    devices = None if options.device is None else [_chosen(store, options.device)]
    remover = Remover(store, Selection(devices, options.operator, options.source, options.imported))
    found = remover.found()
    if not found:
        raise LutCommandError(
            f"LUT store {store.path}: nothing in it answers to that; see `python -m autotailor lut list`"
        )
    for part in found:
        names = ", ".join(Path(source).name or "an unknown file" for source in part.sources)
        tables = f"{part.imported:,} rows imported from {names}" if part.imported else "no imported rows"
        print(
            f"device {part.fingerprint}: {part.operators:,} operators: {part.visits:,} measurements made here, {tables}"
        )
    if not options.yes and not _is_wanted():
        print("nothing was removed")
        return
    remover.remove()
    print("removed; `snakemake --forcerun profile` measures what a model needs of it again")


def _is_wanted() -> bool:
    """Asks the user; raises LutCommandError where nobody can answer."""
    try:
        return input("Remove them? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError as error:
        raise LutCommandError("lut remove: nobody can be asked here, and nothing was removed: add --yes") from error


def _chosen(store: Store, beginning: str) -> str:
    """The one device whose fingerprint begins so; raises LutCommandError where the store does not know just one."""
    known = store.fingerprints()
    chosen = [fingerprint for fingerprint in known if fingerprint.startswith(beginning)]
    if len(chosen) != 1:
        raise LutCommandError(
            f"LUT store {store.path}: {len(chosen)} devices begin with {beginning!r}; known are: "
            f"{', '.join(known) or 'none'}; see `python -m autotailor lut list`"
        )
    return chosen[0]


def _store(folder: Path) -> Store:
    from autotailor.profiling.table.store import FILE, Store

    if not (folder.expanduser() / FILE).exists():
        raise LutCommandError(f"--store {folder}: no LUT store there; name the folder of profile.store")
    return Store(folder)
