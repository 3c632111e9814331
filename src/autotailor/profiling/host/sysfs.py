"""Small files of a device's ``/sys``, read through its transport, so that every device is asked in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from autotailor.profiling.transports.base import Transport

ROOT = PurePosixPath("/sys")
SECONDS = 15.0

READ = """
cd "$1" || exit 0
shift
for pattern; do
  for file in $pattern; do
    value=
    [ -f "$file" ] && { IFS= read -r value < "$file"; } 2>/dev/null
    [ -n "$value" ] && echo "$file=$value"
  done
done
true
"""
"""Prints ``path=first line`` of each file that a pattern stands for and that can be read."""


def read(transport: Transport, patterns: Iterable[str], root: PurePosixPath = ROOT) -> dict[str, str]:
    """Path below the root to the first line of the file, for all files that can be read and hold something.

    Args:
        transport: to the device.
        patterns: paths below ``root``, with the shell's wildcards.
        root: ``/sys``; a copy of one in tests.

    Raises:
        DeviceError: the device cannot be asked.
    """
    lines: list[str] = []
    transport.run(["sh", "-c", READ, "sysfs", str(root), *patterns], lines.append, timeout=SECONDS)
    found = (line.partition("=") for line in lines)
    return {path: value.strip() for path, equals, value in found if equals}


def number(files: Mapping[str, str], path: str) -> float | None:
    """The number in a file; None where it is missing or no number."""
    try:
        return float(files[path])
    except (KeyError, ValueError):
        return None
