"""Real Snakemake, dry: what it plans, and what it refuses before any rule."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
STAGES = [
    "pretrain",
    "compile",
    "finetune",
    "enumerate",
    "profile",
    "validate",
    "sensitivity",
    "search",
    "export",
    "measure",
    "report",
]


def snakemake(directory: Path, *arguments: str, overrides: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs Snakemake from the repository on another directory."""
    command = [str(SNAKEMAKE), "--directory", str(directory), *arguments]
    if overrides:
        command += ["--config", f"overrides={json.dumps(overrides)}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def planned(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Rules that a dry run would execute, with their number of jobs."""
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = re.findall(r"^(\w+)\s+(\d+)$", done.stdout + done.stderr, re.MULTILINE)
    return {rule: int(count) for rule, count in jobs if rule in STAGES}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which every rule seems to have run."""
    directory = tmp_path_factory.mktemp("finished")
    summary = snakemake(directory, "--summary").stdout
    for line in summary.splitlines():
        if line.startswith("results/"):
            path = directory / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(line)
    assert snakemake(directory, "--touch").returncode == 0
    return directory


def test_a_fresh_directory_needs_every_stage(tmp_path: Path) -> None:
    assert planned(snakemake(tmp_path, "-n")) == dict.fromkeys(STAGES, 1)


def test_nothing_to_do_after_a_run(finished: Path) -> None:
    done = snakemake(finished, "-n")
    assert "Nothing to be done" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("finetune.epochs=1", "finetune sensitivity search export measure report"),
        ("device.serial=other", "profile validate search export measure report"),
        ("search.population=10", "search export measure report"),
    ],
)
def test_a_change_reruns_what_depends_on_it(finished: Path, override: str, expected: str) -> None:
    assert set(planned(snakemake(finished, "-n", overrides=[override]))) == set(expected.split())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (["model=resnet_digts"], "unknown model 'resnet_digts'. Did you mean 'resnet_digits'? Known: convnext_tiny"),
        (["device=orin"], "transport 'ssh' is not built yet"),
        (["overrides=[finetune.epochs=-1]"], "epochs"),
    ],
)
def test_errors_are_one_message_before_any_rule(tmp_path: Path, config: list[str], message: str) -> None:
    done = snakemake(tmp_path, "--config", *config)
    said = [line for line in done.stderr.splitlines() if not line.startswith(("Using", "Assuming"))]
    assert done.returncode != 0
    assert message in said[0]
    assert len(said) == 1
    assert not (tmp_path / "results").exists()
