import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest

from autotailor.__main__ import main
from autotailor.commands import runner
from autotailor.project import foreground, places
from autotailor.project.folder import ProjectError


def test_the_exit_code_of_the_build_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "build", lambda targets, is_server: {"host": 5}[targets[0]] + is_server)
    assert main(["runner", "host"]) == 5
    assert main(["runner", "host", "--serve"]) == 6


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that are started; none of them runs."""
    commands: list[Sequence[str]] = []
    monkeypatch.setattr(foreground, "run", lambda command: commands.append(command) or 3)
    return commands


def test_a_clone_builds_its_own_sources(started: list[Sequence[str]]) -> None:
    assert runner.build(["aarch64"]) == 3
    assert started[0][1:] == [str(places.ROOT / "src" / "runner" / "build.py"), "aarch64"]


def test_the_server_of_pools_is_built_by_a_script_of_its_own(started: list[Sequence[str]]) -> None:
    runner.build(["host"], is_server=True)
    assert started[0][1:] == [str(places.ROOT / "src" / "runner" / "serve" / "make.py"), "host"]
    assert Path(started[0][1]).is_file()


def test_an_installed_package_builds_a_copy_of_its_sources(
    started: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):  # the second one finds the copy of the first
        runner.build([])
    copied = Path(started[1][1])
    assert copied.is_relative_to(tmp_path)
    assert copied.read_text() == (places.RUNNER_SOURCES / "build.py").read_text()
    assert copied.parents[2] / "build" / "runner" == places.runner_builds()


def test_an_environment_without_pip_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProjectError, match=r"the runner needs pip.*-m ensurepip"):
        runner.build(["host"])
