"""Runs of the pipeline, as small as they can be, on this machine and through Slurm."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MODEL, DEVICE = "resnet_digits", "host"
RESULTS = Path("results") / MODEL
SAID = "said.txt"
"""What the last run in a folder has said."""
SECONDS = 1500
"""Time in which a run ends, on a machine that does other things, too."""
SMALL = (
    "model.pretrain.epochs=1",
    "model.pretrain.threads=1",
    "finetune.epochs=1",
    "finetune.accept_chance=true",  # one epoch teaches next to nothing
    "finetune.panel.every=0",
    "finetune.calibration.images=64",
    "data.train_images=256",
    "data.evaluation_images=100",
    "model.space.resolution=[32]",
    "model.space.depth=[0]",
    "model.space.width=[0.5,1.0]",
    "model.space.blocks.Bottleneck.expand_ratio=[0.25]",
    "sensitivity.evaluations=2",
    "sensitivity.validate_subnets=2",
    "search.candidates=1",
    "search.population=8",
    "search.generations=2",
    "polish=none",
    "export.budgets=1",
    "device.warmup=1",
    "device.precision_target=0.9",
    "device.min_minutes=0",
    "device.drift=10",  # the machine may be busy
    "device.energy_seconds=0",
    "validate.subnets=2",
    "validate.rounds=2",
    "validate.attempts=1",
    "confirm.rounds=2",
    "confirm.attempts=1",
    "confirm.repeated=1",
    "measure.rounds=2",
    "measure.seconds=0.1",
)
"""No value here depends on where the jobs run."""
BY_SLURM = ("--profile", str(ROOT / "profiles" / "slurm"), "--slurm-init-seconds-before-status-checks", "2")
HERE = ("--profile", str(ROOT / "profiles" / "default"))


def command(where: Sequence[str], *arguments: str, overrides: Sequence[str] = ()) -> list[str]:
    """``snakemake`` with the small configuration; later overrides win."""
    snakemake = [str(Path(sys.executable).with_name("snakemake")), "--snakefile", str(ROOT / "Snakefile"), *where]
    chosen = json.dumps([*SMALL, *overrides])
    return [*snakemake, *arguments, "--config", f"model={MODEL}", f"device={DEVICE}", f"overrides={chosen}"]


def run(folder: Path, where: Sequence[str], *arguments: str, overrides: Sequence[str] = (), **options: Any) -> str:
    """A run to its end; gives what it said. It must end well."""
    with started(folder, where, *arguments, overrides=overrides, **options) as running:
        return running.end()


@dataclass
class Running:
    """A run that has been started.

    Attributes:
        process: Snakemake's.
        said: file of its output.
    """

    process: subprocess.Popen[bytes]
    said: Path

    def end(self, seconds: float = SECONDS) -> str:
        """Waits for the end, which must be a good one; gives the output."""
        status = self.process.wait(seconds)
        text = self.said.read_text()
        assert status == 0, text[-6000:]
        return text


@contextmanager
def started(
    folder: Path,
    where: Sequence[str],
    *arguments: str,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Running]:
    """A run that goes on in a folder, and does not outlive the block."""
    folder.mkdir(exist_ok=True)
    said = folder / SAID
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command(where, *arguments, overrides=overrides),
            cwd=folder, env={**environment, "PATH": path}, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            yield Running(process, said)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def copied(folder: Path, to: Path) -> Path:
    """A copy of a folder in which a run has ended; files keep their dates, so that nothing runs again in the copy."""
    return Path(shutil.copytree(folder, to, symlinks=True))
