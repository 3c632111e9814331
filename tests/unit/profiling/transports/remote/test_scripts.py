"""Facts of a device from what its shell prints."""

from autotailor.profiling.transports.remote.scripts import parse_facts

BOARD = """machine=aarch64
system=Linux
model=Jetson AGX Orin
parts= 0xd42  0xd42
cores=12
khz=2201600 2201600 1113600
memory_kb=62883732 kB
soc=
nonsense
"""


def test_units_are_those_of_the_fingerprint_and_empty_facts_are_left_out() -> None:
    assert parse_facts(BOARD) == {
        "machine": "aarch64", "system": "Linux", "model": "Jetson AGX Orin", "cpu": "0xd42 0xd42", "cores": 12,
        "frequencies_mhz": [2201, 2201, 1113], "memory_gb": 60.0,
    }  # fmt: skip


def test_a_name_of_the_processor_comes_before_its_parts_and_before_the_machine() -> None:
    assert parse_facts("cpu=Ryzen=9\nparts=0x1\nmachine=x86_64")["cpu"] == "Ryzen=9"
    assert parse_facts("machine=x86_64") == {"machine": "x86_64", "cpu": "x86_64", "cores": None}
    assert parse_facts("") == {"cpu": "unknown", "cores": None}


def test_words_that_are_no_whole_numbers_are_left_out() -> None:
    found = parse_facts("khz=1800000 1.5 -3 x9 9x 1800000\ncores=many 8\nmemory_kb=?")
    assert (found["frequencies_mhz"], found["cores"]) == ([1800, 1800], 8)
    assert "memory_gb" not in found
