"""Slurm is asked for the licences of devices before any job."""

from pathlib import Path

import pytest

from autotailor.config import ConfigError, check_licences
from autotailor.config.licences import read_licences

DECLARED = "LicenseName=matlab Total=10 Used=1 Free=9 Reserved=0 Remote=no\nLicenseName=device_host Total=1 Used=0"


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scontrol that prints what is written to its file."""
    program, said = tmp_path / "scontrol", tmp_path / "said.txt"
    program.write_text(f'#!/bin/sh\n[ "$*" = "show licenses --oneliner" ] && /bin/cat {said}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return said


def test_declared_licences_are_read() -> None:
    assert read_licences(DECLARED) == {"matlab": 10, "device_host": 1}
    assert read_licences("No licenses configured in Slurm.") == {}


def test_one_licence_of_each_device_is_enough(scontrol: Path) -> None:
    scontrol.write_text(DECLARED)
    check_licences(["device_host", "device_host"])


def test_a_missing_licence_is_refused_with_the_whole_line_of_slurm_conf(scontrol: Path) -> None:
    scontrol.write_text(DECLARED)
    with pytest.raises(ConfigError, match=r"no licence device_orin, .*Licenses=matlab:10,device_host:1,device_orin:1$"):
        check_licences(["device_host", "device_orin"])


def test_a_licence_that_two_jobs_can_hold_is_refused(scontrol: Path) -> None:
    scontrol.write_text(DECLARED)
    with pytest.raises(ConfigError, match=r"10 licences matlab, .* write matlab:1 in the line Licenses="):
        check_licences(["matlab"])


def test_a_machine_that_cannot_submit_is_told(scontrol: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"`scontrol show licenses --oneliner` says: .*said.txt"):
        check_licences(["device_host"])  # what scontrol shall print is not there
    monkeypatch.setenv("PATH", "")
    check_licences([])
    with pytest.raises(ConfigError, match=r"has no scontrol, .* run there"):
        check_licences(["device_host"])
