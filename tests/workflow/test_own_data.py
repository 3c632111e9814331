"""Own network and own pictures: what ``inspect --data --yaml`` writes is a run without a change."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx_ir
import pytest

import networks
from autotailor.compiler.sources.source import export_module
from picture_files import photo

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a clone holds, as far as a plan needs it, with a network and pictures of one's own."""
    folder = tmp_path / "autotailor"
    for name in ("conf", "workflow"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "models").mkdir()
    onnx_ir.save(export_module(networks.make("mobilenet"), 32), folder / "models" / "mine.onnx")
    for label, name in enumerate(("ant", "bee", "cat", "dog", "eel")):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(3):
            photo(100 * label + i, (60, 48)).save(folder / "photos" / name / f"{i}.jpg")
    return folder


def call(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_two_commands_plan_a_run_of_ones_own_network_and_pictures(clone: Path) -> None:
    printed = call(
        clone, sys.executable, "-m", "autotailor", "inspect", "models/mine.onnx", "--data", "photos", "--yaml"
    )
    (clone / "conf" / "model" / "mine.yaml").write_text(printed.stdout)
    said = call(clone, SNAKEMAKE, "-n", "--config", "model=mine", "device=host")
    jobs = dict(re.findall(r"^(\w+)\s+(\d+)$", said.stdout + said.stderr, re.MULTILINE))
    assert {"compile", "finetune", "profile", "sensitivity", "search", "export", "report"} <= set(jobs)
    assert "pretrain" not in jobs
