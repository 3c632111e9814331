"""The way to a device is not in a run's files, and another device is refused before any work."""

import json
from pathlib import Path

import pytest

import autotailor
import finished_runs
from autotailor.artifacts import file_digest
from autotailor.runs import Run, RunError
from autotailor.runs.reach import check_reachable, device_of


@pytest.fixture
def remote(copied_run: Path) -> Run:
    """A run on a remote device, as its files describe it: without address and key."""
    path = copied_run / "configuration.json"
    content = json.loads(path.read_text())
    content["device"] |= {"transport": "ssh"}
    path.write_text(json.dumps(content))
    record = copied_run / "provenance" / "report.json"
    document = json.loads(record.read_text())
    document["outputs"]["configuration.json"] = file_digest(path)
    record.write_text(json.dumps(document))
    return autotailor.open_run(copied_run)


def test_the_way_to_a_device_can_be_given(remote: Run) -> None:
    device = device_of(remote, {"address": "me@board", "serial": None, "key": "~/key"})
    assert (device.address, device.key, device.transport) == ("me@board", "~/key", "ssh")
    with pytest.raises(RunError, match=r"unknown \['password'\]; known are address, serial, key"):
        device_of(remote, {"password": "x"})


def test_the_way_to_a_device_is_read_from_the_configuration_and_nothing_else_is(remote: Run) -> None:
    finished_runs.copy_configuration(remote.folder.root)
    path = remote.folder.root / "conf" / "device" / "host.yaml"
    text = path.read_text().replace("address: null", "address: me@board").replace("warmup: 3", "warmup: 99")
    path.write_text(text)
    device = device_of(remote)
    assert (device.address, device.warmup) == ("me@board", remote.device.warmup)


def test_another_device_than_that_of_the_table_is_refused(finished_run: Path) -> None:
    """The table of the finished run was measured on a processor of nobody."""
    run = autotailor.open_run(finished_run)
    with pytest.raises(RunError, match=r"measured on another machine.*without measuring, add --no-measure"):
        check_reachable(run, device_of(run))


def test_a_device_without_an_address_is_refused(remote: Run) -> None:
    with pytest.raises(RunError, match=r"device host: .*address.* add --no-measure"):
        check_reachable(remote, device_of(remote))
