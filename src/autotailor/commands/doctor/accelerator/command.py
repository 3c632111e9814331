"""What ``doctor --accelerator`` prints and writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from autotailor.artifacts import write_json
from autotailor.commands.doctor.accelerator.examination import Part, examine
from autotailor.commands.doctor.accelerator.lab import FULL, TINY, lab
from autotailor.commands.doctor.accelerator.training import FitnessError
from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.commands.doctor.table import print_findings


def check(accelerator: str, output: Path, *, tiny: bool = False) -> None:
    """Examines an accelerator, prints a table and writes it as JSON.

    Args:
        accelerator: its name, see ``autotailor.compute.accelerator``.
        output: of the JSON file.
        tiny: with a small network and few pictures, in seconds.

    Raises:
        AcceleratorError: the name is unknown, or this machine does not have the accelerator.
        FitnessError: a check failed.
    """
    parts: list[Part] = []
    with tempfile.TemporaryDirectory(prefix="autotailor-doctor-") as folder:
        examined = lab(TINY if tiny else FULL, accelerator, Path(folder))

        def findings() -> Iterator[Finding]:
            for part in examine(examined):
                parts.append(part)
                yield part.finding()

        print_findings(str(examined.device), findings())
    device, checks = str(examined.device), [part.to_dict() for part in parts]
    write_json(output, {"accelerator": device, "network": examined.effort.network, "checks": checks})
    if failed := [part.name for part in parts if part.verdict is Verdict.FAILED]:
        raise FitnessError(f"accelerator {device} failed: {', '.join(failed)}; {output} has the details to report")
