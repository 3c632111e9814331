"""Writes the text of a ``.param``, which lists a network's layers line by line."""

from __future__ import annotations

from collections.abc import Sequence

from autotailor.profiling.runtimes.ncnn.layers import Fragment

MAGIC = "7767517"


def param_text(lines: list[str]) -> str:
    """A ``.param`` from its layers' lines."""
    blobs = sum(int(line.split()[3]) for line in lines)
    return f"{MAGIC}\n{len(lines)} {blobs}\n" + "\n".join(lines) + "\n"


def operator_lines(steps: Fragment, name: str, reads: Sequence[str], writes: Sequence[str]) -> list[str]:
    """The lines of an operator's layers between the blobs that the operator reads and writes."""
    blobs = {f"i{j}": blob for j, blob in enumerate(reads)} | {f"o{j}": blob for j, blob in enumerate(writes)}
    lines = []
    for number, step in enumerate(steps):
        blobs |= {blob: f"{name}_{blob}" for blob in step.writes if blob not in blobs}
        reading, writing = [blobs[blob] for blob in step.reads], [blobs[blob] for blob in step.writes]
        lines.append(step.layer.line(f"{name}_{number}", reading, writing))
    return lines
