"""What this machine says of itself."""

from pathlib import Path

import pytest

from autotailor.profiling.transports.local import cpu_name

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
