"""What this machine says of itself."""

import os
import selectors
from pathlib import Path
from typing import Any

import pytest

from autotailor.profiling import DeviceConfig
from autotailor.profiling.transports.local import LocalTransport, cpu_name

ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {}\n\nprocessor\t: 1\nCPU part\t: {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor : 0\nmodel name\t: AMD EPYC\n\nmodel name\t: AMD EPYC\n", "AMD EPYC"),
        ("Hardware\t: BCM2835\n" + ARM.format("0xd08", "0xd08"), "BCM2835"),
        (ARM.format("0xd08", "0xd08"), "0xd08"),
        (ARM.format("0xd0b", "0xd05"), "0xd05 0xd0b"),
    ],
)
def test_processors_of_arm_which_have_no_name_are_told_by_their_cores(tmp_path: Path, text: str, expected: str) -> None:
    """A Raspberry Pi 4 and a Pi 5 had one fingerprint, so that a table of the one counted as measured on the other."""
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_name(tmp_path / "cpuinfo") == expected


def test_without_the_file_something_is_told(tmp_path: Path) -> None:
    assert cpu_name(tmp_path / "missing")


def test_lines_that_a_process_writes_as_it_ends_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come after a look that saw nothing, and before the question whether the process has ended."""
    look, looks, lines = selectors.DefaultSelector.select, iter(["first"]), list[str]()

    def late(selector: selectors.DefaultSelector, seconds: float) -> list[Any]:
        if next(looks, None):
            (transport.folder / "looked").touch()
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            return []
        return look(selector, seconds)

    monkeypatch.setattr(selectors.DefaultSelector, "select", late)
    with LocalTransport(DeviceConfig("host")) as transport:
        command = "until [ -e looked ]; do sleep 0.01; done; echo last"
        assert transport.run(["sh", "-c", command], lines.append) == 0
    assert lines == ["last"]
