import os
import sys
from pathlib import Path

import pytest
from snakemake.cli import parse_config

from autotailor.project import places, start
from autotailor.project.folder import ProjectError


def test_snakemake_reads_the_configuration_as_it_was_given() -> None:
    quoted = ['export.budgets=["50%","25%"]', """data.root="my wife's \\ photos" """]
    config = {"model": "mine", "overrides": ["finetune.epochs=1", "data.mean=[0.4,0.5]", *quoted]}
    command = start.workflow_command(config)
    assert parse_config(command[command.index("--config") + 1 :]) == config


def test_targets_of_the_user_are_no_part_of_the_configuration() -> None:
    command = start.workflow_command({"model": "mine"}, ["--cores", "2"], ["results/mine/space.json"])
    assert command[0] == sys.executable
    assert command.index("results/mine/space.json") < command.index("--config") == len(command) - 2
    assert "--config" not in start.workflow_command({})


def test_a_profile_is_the_users_own_or_one_of_autotailors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert start.profile("slurm") == start.profile("profiles/slurm") == places.WORKFLOW / "profiles" / "slurm"
    own = tmp_path / "profiles" / "slurm" / "profile.yaml"
    own.parent.mkdir(parents=True)
    own.touch()
    assert start.profile("slurm").resolve() == start.profile("profiles/slurm").resolve() == own.parent
    with pytest.raises(ProjectError, match=r"--profile slrum: no such profile.*default.*slurm"):
        start.profile("slrum")


def test_programs_of_this_environment_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/elsewhere")
    assert start.environment()["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/elsewhere"]
    monkeypatch.delenv("PATH")
    assert start.environment()["PATH"] == str(Path(sys.executable).parent)
