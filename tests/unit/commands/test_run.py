"""``autotailor run``: what is started, and what is refused before anything starts."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from snakemake.cli import parse_config

from autotailor.__main__ import main
from autotailor.commands import run
from autotailor.project import foreground, places
from autotailor.project.folder import ProjectError


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Sequence[str]]:
    """The commands that are started in an empty folder, by name of their script; none of them runs."""
    commands: list[Sequence[str]] = []
    monkeypatch.setattr(foreground, "run", lambda command, **_: commands.append(command) or 0)
    monkeypatch.chdir(tmp_path)
    return commands


def behind_config(command: Sequence[str]) -> list[str]:
    return list(command[command.index("--config") + 1 :])


def scripts(commands: list[Sequence[str]]) -> list[str]:
    return [Path(command[1]).name for command in commands]


def test_keys_of_a_run_and_parameters_of_the_configuration_are_told_apart(started: list[Sequence[str]]) -> None:
    assert main(["run", "model=vit_digits", "finetune.epochs=1", "device=macs", "overrides=[seed=1,data=digits]"]) == 0
    assert behind_config(started[0]) == [
        "model=vit_digits",
        "device=macs",
        'overrides=["finetune.epochs=1", "seed=1", "data=digits"]',
    ]
    assert scripts(started) == ["launch.py", "finish.py"]
    assert started[1][2:] == ["vit_digits", "macs"]


def test_parameters_stand_on_both_sides_of_options(started: list[Sequence[str]]) -> None:
    assert main(["run", "model=vit_digits", "-n", "device=macs", "--cores", "2", "seed=1", "data=digits"]) == 0
    assert behind_config(started[0]) == ["model=vit_digits", "device=macs", 'overrides=["seed=1", "data=digits"]']
    assert started[0][4:7] == ["--dry-run", "--cores", "2"]


def test_a_run_without_arguments_is_the_embedded_one(started: list[Sequence[str]]) -> None:
    assert main(["run"]) == 0
    assert "--config" not in started[0]
    assert started[1][2:] == ["resnet_digits", "host"]


def test_what_follows_two_dashes_goes_to_snakemake(started: list[Sequence[str]]) -> None:
    assert main(["run", "model=vit_digits", "-c", "2", "--", "--forcerun", "search", "--", "report.html"]) == 0
    assert " --forcerun search -- report.html --quiet rules --cores 2 --config" in " ".join(started[0])
    assert scripts(started) == ["launch.py"]


def test_a_dry_run_shows_no_end(started: list[Sequence[str]]) -> None:
    assert main(["run", "-n", "--profile", "slurm"]) == 0
    assert started[0][4:6] == ["--dry-run", "--profile"]
    assert scripts(started) == ["launch.py"]


def test_the_exit_code_of_snakemake_is_that_of_the_command(
    started: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreground, "run", lambda command, **_: started.append(command) or 130)
    assert main(["run"]) == 130
    assert scripts(started) == ["launch.py"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet50"], r"argument 'resnet50': expected KEY=VALUE, such as model=mine"),
        (["=x"], r"argument '=x': expected KEY=VALUE"),
        (["model=a", "model=b"], r"argument 'model=b': model is given twice"),
        (["model=resnet5"], r"unknown model 'resnet5'\. Did you mean 'resnet50'\?"),
        (["device=[host,toaster]"], r"unknown device 'toaster'.*Known: .*host"),
        (["--profile", "nowhere"], r"--profile nowhere: no such profile"),
        (["--", "--config", "model=b"], r"-- --config: a run sets this option itself; give KEY=VALUE before"),
        (["--", "--snakefile=mine"], r"-- --snakefile: a run sets this option itself"),
    ],
)
def test_bad_arguments_are_refused_before_snakemake_starts(
    arguments: list[str], words: str, started: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments]) == 1
    assert re.search(words, capsys.readouterr().err)
    assert started == []


def test_a_model_of_the_users_is_known_beside_autotailors(started: list[Sequence[str]], tmp_path: Path) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "mine.yaml").touch()
    assert main(["run", "model=mine"]) == main(["run", "model=resnet50"]) == 0


def test_an_unknown_option_is_exit_code_2(started: list[Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--forcerun", "search"])
    assert "--forcerun" in capsys.readouterr().err
    assert started == []


@pytest.mark.parametrize("option", ["-j4", "--model", "--keep-going"])
def test_an_unknown_option_is_told_where_parameters_and_snakemakes_options_stand(
    started: list[Sequence[str]], capsys: pytest.CaptureFixture[str], option: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", "model=mine", option])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert not started
    assert "usage: autotailor run [KEY=VALUE ...]" in said
    assert f"unrecognized arguments: {option}; a parameter is written KEY=VALUE, and options of Snakemake stand" in said


def test_another_command_says_its_own_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", "models/mine.onnx", "--yamll", "--quick"])
    said = capsys.readouterr().err
    assert "usage: autotailor inspect" in said
    assert "unrecognized arguments: --yamll --quick" in said
    assert "Snakemake" not in said


def test_snakemake_reads_the_configuration_as_it_was_given() -> None:
    quoted = ['export.budgets=["50%","25%"]', """data.root="my wife's \\ photos" """]
    config = {"model": "mine", "overrides": ["finetune.epochs=1", "data.mean=[0.4,0.5]", *quoted]}
    command = run.workflow_command(config)
    assert parse_config(command[command.index("--config") + 1 :]) == config


def test_targets_of_the_user_are_no_part_of_the_configuration() -> None:
    command = run.workflow_command({"model": "mine"}, ["--cores", "2"], ["results/mine/space.json"])
    assert command[0] == sys.executable
    assert command.index("results/mine/space.json") < command.index("--config") == len(command) - 2
    assert "--config" not in run.workflow_command({})


def test_a_profile_is_the_users_own_or_one_of_autotailors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run.profile("slurm") == run.profile("profiles/slurm") == places.WORKFLOW / "profiles" / "slurm"
    own = tmp_path / "profiles" / "slurm" / "profile.yaml"
    own.parent.mkdir(parents=True)
    own.touch()
    assert run.profile("slurm").resolve() == run.profile("profiles/slurm").resolve() == own.parent
    with pytest.raises(ProjectError, match=r"--profile slrum: no such profile.*default.*slurm"):
        run.profile("slrum")


def test_programs_of_this_environment_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/elsewhere")
    assert run.environment()["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/elsewhere"]
    monkeypatch.delenv("PATH")
    assert run.environment()["PATH"] == str(Path(sys.executable).parent)
