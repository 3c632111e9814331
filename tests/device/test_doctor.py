"""The doctor on remote devices: an ADB daemon and an OpenSSH server."""

from pathlib import Path

import pytest

from autotailor.commands.doctor import examination
from autotailor.commands.doctor.examination import examine
from autotailor.commands.doctor.finding import Verdict
from autotailor.profiling import DeviceConfig
from device.adb_daemon import AdbDaemon
from device.ssh_server import SshServer, find_sshd


def remote_checks(device: DeviceConfig) -> dict[str, Verdict]:
    """Verdicts of the checks before the runtime's."""
    found: dict[str, Verdict] = {}
    for finding in examine(device):
        found[finding.check] = finding.verdict
        if finding.check == "energy":
            break
    return found


def test_a_phone(phone: AdbDaemon) -> None:
    found = remote_checks(DeviceConfig(name="phone", transport="adb", address=phone.address))
    assert [found[check] for check in ("reachable", "authorised", "space", "lock")] == [Verdict.GOOD] * 4
    assert not list(phone.phone.tmp.glob("autotailor/run-*"))


def test_a_board_and_its_refusals(tmp_path: Path, home: Path) -> None:
    program = find_sshd()
    if program is None:
        pytest.skip("the OpenSSH server is missing: apt-get install openssh-server")
    server = SshServer(program, tmp_path / "sshd", home)
    try:
        section = {"name": "board", "transport": "ssh", "address": server.address, "folder": str(tmp_path / "board")}
        found = remote_checks(DeviceConfig.from_section(section))
        assert [found[check] for check in ("reachable", "authorised", "space", "lock")] == [Verdict.GOOD] * 4
        nowhere = list(examine(DeviceConfig.from_section(section | {"folder": "/proc/1/here"})))
        assert [(f.check, f.verdict) for f in nowhere[1:]] == [("usable", Verdict.FAILED)]
        assert "device.folder" in nowhere[1].remedy
        (home / ".ssh" / "id_ed25519").unlink()
        refused = list(examine(DeviceConfig.from_section(section)))
    finally:
        server.stop()
    assert [(f.check, f.verdict) for f in refused] == [("reachable", Verdict.GOOD), ("authorised", Verdict.FAILED)]
    assert "ssh-copy-id" in refused[1].remedy


def test_too_little_room_is_a_failure(phone: AdbDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "NEEDED_MB", 10**9)
    found = remote_checks(DeviceConfig(name="phone", transport="adb", address=phone.address))
    assert found["space"] is Verdict.FAILED
