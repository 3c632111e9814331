"""Checks that a LUT was measured on the device at hand: its predictions do not hold for another machine."""

from collections.abc import Mapping
from typing import Any

from autotailor.profiling.device import Fingerprint
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.table.lut import LUT
from autotailor.sections import flatten

SHOWN = 6
"""Differences that a message lists."""


def check_same_device(lut: LUT, device: Fingerprint, name: str) -> None:
    """Refuses a device that is not the one whose operators a LUT holds.

    Args:
        lut: the LUT whose predictions are to be compared with measurements of whole networks.
        device: the fingerprint of the device at hand.
        name: the device's name, for the message.

    Raises:
        ProfilingError: the two devices differ; the message says in what, and what to do.
    """
    if not lut.fingerprint or lut.fingerprint == device.id:
        return
    differences = [] if lut.device is None else differing_facts(lut.device.facts, device.facts)
    more = f" and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
    what = "; ".join(differences[:SHOWN]) + more or "the table does not say what it was measured on"
    raise ProfilingError(
        f"device {name}: the LUT's operators were measured on another machine, or with another runtime or other "
        f"settings ({what}). Whole networks measured here cannot be compared with the LUT: measure its operators anew "
        "(`autotailor run ... -- --forcerun profile`, with the settings of this run), or run where the table was made"
    )


def differing_facts(measured: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """``key was A, is B`` for each fact in which two fingerprints differ."""
    before, now = flatten(measured), flatten(present)
    return [
        f"{key} was {before.get(key)!r}, is {now.get(key)!r}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    ]
