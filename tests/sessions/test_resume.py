"""A run of the tests that was killed goes on behind the tests that passed; skips say what mends them."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sessions import resume, skips

TESTS = Path(__file__).parents[1]
CONFTEST = """
from sessions import resume, skips

pytest_addoption = resume.add_option

def pytest_configure(config):
    for plugin in (resume, skips):
        config.pluginmanager.register(plugin)
"""
SUITE = """
import os
from pathlib import Path
import pytest

def note(name):
    with Path("ran.txt").open("a") as stream:
        stream.write(name + "\\n")

def test_first():
    note("first")

def test_second():
    note("second")
    if not Path("mended").exists():
        os._exit(9)

def test_third():
    note("third")

def test_skipped():
    pytest.skip("the runner is missing: make runner")
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a suite of its own."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    return tmp_path


def run(suite: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )


def ran(suite: Path) -> Counter[str]:
    return Counter((suite / "ran.txt").read_text().split())


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_killed_run_goes_on_behind_what_passed(suite: Path, workers: tuple[str, ...]) -> None:
    killed = run(suite, "--resume", *workers)
    assert killed.returncode != 0
    (suite / "mended").touch()
    first = ran(suite)["first"]
    done = run(suite, "--resume", *workers)
    assert done.returncode == 0, done.stdout
    assert ran(suite)["first"] == first == 1
    assert ran(suite)["second"] >= 2


def test_changed_code_begins_anew(suite: Path) -> None:
    (suite / "mended").touch()
    assert run(suite, "--resume").returncode == 0
    (suite / "src").mkdir()
    (suite / "src" / "code.py").write_text("")
    assert run(suite, "--resume").returncode == 0
    assert ran(suite)["first"] == 2


def test_nothing_left_to_run_is_a_success(suite: Path) -> None:
    (suite / "mended").touch()
    (suite / "tests" / "test_suite.py").write_text(SUITE.partition("def test_skipped")[0])
    assert run(suite, "--resume").returncode == 0
    again = run(suite, "--resume")
    assert again.returncode == 0, again.stdout
    assert ran(suite)["third"] == 1


def test_without_the_option_everything_runs(suite: Path) -> None:
    (suite / "mended").touch()
    assert run(suite).returncode == run(suite).returncode == 0
    assert ran(suite)["first"] == 2


def test_a_run_ends_with_what_mends_its_skips(suite: Path) -> None:
    (suite / "mended").touch()
    shown = run(suite).stdout
    assert "1 test: the runner is missing; mended by: make runner" in shown


def test_the_most_expensive_reason_comes_first() -> None:
    counts = Counter({"a is missing: apt-get install a": 1, "only on Mars": 12})
    assert skips.lines(counts) == [
        "12 tests: only on Mars; nothing mends that here",
        "1 test: a is missing; mended by: apt-get install a",
    ]


def test_a_table_of_results_is_no_code(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    before = resume.code_digest(tmp_path)
    (tmp_path / "benchmarks" / "results.csv").write_text("1")
    assert resume.code_digest(tmp_path) == before
    (tmp_path / "benchmarks" / "measure.py").write_text("1")
    assert resume.code_digest(tmp_path) != before
