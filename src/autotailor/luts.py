"""``python -m autotailor lut``: what the LUT store knows, as tables that go from one person to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.profiling.store import Store


class LutCommandError(AutoTailorError):
    """The command line asks for something that the store does not have."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``lut`` to the commands."""
    parser = commands.add_parser(
        "lut",
        help="list, export or import measured operators",
        description="Lists the devices that the LUT store knows, exports all operators of one as CSV, or imports such "
        "a table: runs on a device with the same fingerprint then measure only what is not in it.",
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


def show(options: argparse.Namespace) -> None:
    """Prints a line for each device; raises LutCommandError where there is no store."""
    from rich.console import Console
    from rich.table import Table

    table = Table("fingerprint", "device", "runtime", "operators", "last")
    for known in _store(options.store).devices():
        facts = known.fingerprint.facts
        hardware, runtime = facts.get("hardware", {}), facts.get("runtime", {})
        what = hardware.get("model") or hardware.get("cpu") or hardware.get("machine") or "?"
        version = f"{runtime.get('name')} {runtime.get('version')}, threads {facts.get('threads')}"
        table.add_row(
            known.fingerprint.id, str(what), f"{version}, {facts.get('precision')}", f"{known.operators:,}", known.last
        )
    Console().print(table)


def write(options: argparse.Namespace) -> None:
    """Writes the CSV of one device; raises LutCommandError where the store does not know just one such."""
    store = _store(options.store)
    known = [device.fingerprint.id for device in store.devices()]
    chosen = [fingerprint for fingerprint in known if fingerprint.startswith(options.device)]
    if len(chosen) != 1:
        raise LutCommandError(
            f"LUT store {store.path}: {len(chosen)} devices begin with {options.device!r}; known are: "
            f"{', '.join(known) or 'none'}; see `python -m autotailor lut list`"
        )
    lut = store.lut(chosen[0])
    try:
        options.path.parent.mkdir(parents=True, exist_ok=True)
        lut.write(options.path)
    except OSError as error:
        raise LutCommandError(f"{options.path}: cannot be written ({error.strerror}); name another file") from error
    print(f"{options.path}: {len(lut):,} operators of device {chosen[0]}")


def read(options: argparse.Namespace) -> None:
    """Imports a CSV; the store is made where there is none. Raises LUTError where it is no table of a device."""
    from autotailor.profiling.lut import LUT
    from autotailor.profiling.store import Store

    lut = LUT.read(options.path)
    counted = Store(options.store).merge(lut)
    print(f"{options.path}: {len(lut):,} operators of device {lut.fingerprint} imported, {counted:,} of them are new")


def _store(folder: Path) -> Store:
    from autotailor.profiling.store import FILE, Store

    if not (folder.expanduser() / FILE).exists():
        raise LutCommandError(f"--store {folder}: no LUT store there; name the folder of profile.store")
    return Store(folder)
