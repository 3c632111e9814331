"""Reads small files of a device's ``/sys`` through the device's transport, in the same way on every device."""

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
"""Prints ``path=first line`` for each file that matches a pattern and can be read."""


def read(transport: Transport, patterns: Iterable[str], root: PurePosixPath = ROOT) -> dict[str, str]:
    """First lines of all files that match a pattern, can be read and are not empty, by path below the root.

    Args:
        transport: transport to the device.
        patterns: paths below ``root``, with the shell's wildcards.
        root: ``/sys``, or a copy of it in tests.

    Raises:
        DeviceError: the device cannot be asked.
    """
    lines: list[str] = []
    transport.run(["sh", "-c", READ, "sysfs", str(root), *patterns], lines.append, timeout=SECONDS)
    pairs = (line.partition("=") for line in lines)
    return {path: value.strip() for path, equals, value in pairs if equals}


def number(files: Mapping[str, str], path: str) -> float | None:
    """The number in a file; None where the file is missing or holds no number."""
    try:
        return float(files[path])
    except (KeyError, ValueError):
        return None
