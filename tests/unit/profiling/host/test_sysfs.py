"""Files of /sys, read through a transport."""

from pathlib import Path, PurePosixPath

import pytest

from autotailor.profiling import DeviceConfig
from autotailor.profiling.host.sysfs import number, read
from autotailor.profiling.transports import LocalTransport

TRANSPORT = LocalTransport(DeviceConfig.from_section({"name": "test"}))


def test_first_lines_of_all_files_that_match_and_can_be_read(tmp_path: Path) -> None:
    for name, content in (
        ("cpu0/freq", "1800\nmore\n"),
        ("cpu1/freq", " 900 \n"),
        ("cpu2/freq", ""),
        ("cpu0/a=b", "1\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    (tmp_path / "cpu3" / "freq").mkdir(parents=True)
    found = read(TRANSPORT, ["cpu*/freq", "none/*", "cpu0/gone"], PurePosixPath(tmp_path))
    assert found == {"cpu0/freq": "1800", "cpu1/freq": "900"}
    assert read(TRANSPORT, ["*"], PurePosixPath(tmp_path / "nowhere")) == {}


@pytest.mark.parametrize(("text", "expected"), [("1800", 1800.0), ("-3.5", -3.5), ("<unknown>", None)])
def test_a_number_is_read_or_missing(text: str, expected: float | None) -> None:
    assert number({"a": text}, "a") == expected
    assert number({}, "a") is None
