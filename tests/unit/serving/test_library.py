"""The library that runs pools: where it is looked for, and what is said where it is missing or another version's."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotailor.project import places
from autotailor.serving import PoolError, library
from device.emulation import needed
from served import SOURCES


def test_its_functions_are_those_of_the_header() -> None:
    header = (SOURCES / "autotailor.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"\bautotailor_(\w+)\(", header)) - {"version", "error"}
    assert set(library._SIGNATURES) < declared
    assert declared - set(library._SIGNATURES) == {"members", "member", "exit", "infer"}
    assert f"AUTOTAILOR_API_VERSION {library.VERSION}\n" in header


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another folder of what was built, whose library is not remembered."""
    cached = library._loaded, library.function
    monkeypatch.setattr(places, "runner_builds", lambda: tmp_path)
    for each in cached:
        each.cache_clear()
    yield tmp_path
    for each in cached:
        each.cache_clear()


def test_where_it_was_not_built_the_command_that_builds_it_is_said(builds: Path) -> None:
    with pytest.raises(
        PoolError, match=r"libautotailor\.so.* is missing at .*: build it with: make serve TARGETS=host"
    ):
        library.call("set", None, b"{}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "int autotailor_version(void) { return 1; }",
            "has version 1 of the interface, expected 2: build it anew with",
        ),
        ("int other(void) { return 1; }", "cannot be loaded .*: build it with: make serve TARGETS=host"),
        (None, "cannot be loaded .*: build it with: make serve TARGETS=host"),
    ],
    ids=["version", "another library", "no library"],
)
def test_a_library_that_does_not_fit_is_told(builds: Path, source: str | None, message: str) -> None:
    path = builds / "host" / library.LIBRARY
    path.parent.mkdir()
    path.write_text("nonsense")
    if source is not None:
        (builds / "made.c").write_text(source)
        words = [needed("gcc", "gcc"), "-shared", "-fPIC", str(builds / "made.c"), "-o", str(path)]
        subprocess.run(words, check=True)
    with pytest.raises(PoolError, match=message):
        library.call("set", None, b"{}")
