"""The quick tier leaves out what is listed as slow, and nothing that a change can break."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessions import changes, tiers

ROOT = Path(__file__).parents[2]
LISTED = tiers.slow(ROOT)
CONFTEST = """
import sys
sys.path[:0] = [{tests!r}]
from sessions import tiers

pytest_addoption = tiers.add_option

def pytest_configure(config):
    config.pluginmanager.register(tiers)
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of its own: a slow file that would fail, a slow test, and a quick one."""
    (tmp_path / "tests").mkdir()
    for name, text in {
        "conftest.py": CONFTEST.format(tests=str(ROOT / "tests")),
        "slow.txt": "# SECONDS NAME\n90 tests/test_a.py\n30 tests/test_b.py::test_slow\n",
        "test_a.py": "raise SystemError",
        "test_b.py": "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_slow(n): assert 0\n"
        "def test_quick(): pass\n",
    }.items():
        (tmp_path / "tests" / name).write_text(text)
    return tmp_path


def run(suite: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(suite), *arguments, "tests"]
    return subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False).stdout


def test_what_is_listed_is_left_out(suite: Path) -> None:
    assert_left_out(run(suite, "--quick"))


def test_workers_leave_out_what_is_listed(suite: Path) -> None:
    assert_left_out(run(suite, "--quick", "-n", "1"))


def assert_left_out(shown: str) -> None:
    assert re.search(r"\b1 passed", shown), shown
    assert "failed" not in shown
    assert "error" not in shown
    assert "quick: 2 entries (2 minutes) of tests/slow.txt are left out" in shown


def test_without_the_option_everything_runs(suite: Path) -> None:
    assert "SystemError" in run(suite)


def test_nothing_is_left_out_where_the_change_is_unknown(suite: Path) -> None:
    shown = run(suite, "--quick", "--changed=1")
    assert "nothing is left out" in shown
    assert "SystemError" in shown


def test_of_what_is_listed_only_what_a_change_cannot_break_is_left_out(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "base_commit", lambda root, asked: "0" * 40)
    monkeypatch.setattr(changes, "changed_files", lambda root, base: frozenset({"tests/test_a.py"}))
    found = tiers.decide(suite, "1", spare=120)
    assert found.left_out == {"tests/test_b.py::test_slow"}
    assert found.left_to_all == {}
    assert (
        "quick: of 2 entries (2 minutes) of tests/slow.txt, 1 depend on the 1 files that changed since" in found.header
    )


@pytest.mark.parametrize(
    ("spare", "changed", "runs"),
    [
        (120, {"src/a.py"}, {"tests/test_a.py", "tests/test_b.py::test_slow"}),
        (119, {"src/a.py"}, {"tests/test_b.py::test_slow"}),
        (119, {"src/a.py", "tests/test_a.py"}, {"tests/test_a.py"}),
        (29, {"src/a.py"}, set()),
    ],
    ids=["all", "the fewest files first", "its own file has changed", "nothing fits"],
)
def test_what_a_change_can_break_runs_while_time_is_left(
    suite: Path, monkeypatch: pytest.MonkeyPatch, spare: float, changed: set[str], runs: set[str]
) -> None:
    monkeypatch.setattr(changes, "base_commit", lambda root, asked: "0" * 40)
    monkeypatch.setattr(changes, "changed_files", lambda root, base: frozenset(changed))
    monkeypatch.setattr(changes, "touched", lambda root, tests, changed: {"tests/test_a.py": 9, "tests/test_b.py": 4})
    found = tiers.decide(suite, "1", spare)
    assert found.left_out == tiers.slow(suite).keys() - runs
    assert found.left_to_all.keys() == found.left_out


def test_what_is_left_to_the_whole_suite_is_listed(suite: Path) -> None:
    for command in (["init", "-q", "-b", "main"], ["add", "."]):
        subprocess.run(["git", *command], cwd=suite, check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "landed"], cwd=suite, check=True)
    (suite / "tests" / "slow.txt").write_text("999 tests/test_a.py\n")
    (suite / "tests" / "test_a.py").write_text("raise RuntimeError")
    shown = run(suite, "--quick", "--changed=HEAD")
    assert "what the change can break and `make test-all` runs" in shown
    assert "999 s tests/test_a.py" in shown
    assert "RuntimeError" not in shown


@pytest.mark.parametrize("name", LISTED)
def test_the_list_names_tests_that_exist(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).is_file()
    assert not test or re.search(rf"^ *def {test}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_each_room_keeps_quick_tests() -> None:
    """The rooms below tests/unit, and the folders beside it that `make test` runs at all."""
    beside = ("benchmarks", "device", "docs", "runner", "sessions", "workflow")
    rooms = [path for path in (ROOT / "tests" / "unit").iterdir() if any(path.rglob("test_*.py"))]
    for room in [*rooms, *(ROOT / "tests" / name for name in beside)]:
        names = [path.relative_to(ROOT).as_posix() for path in room.rglob("test_*.py")]
        assert set(names) - LISTED.keys(), room


def test_one_run_of_the_whole_workflow_is_quick() -> None:
    whole = "tests/workflow/test_end_to_end.py"
    assert not LISTED.keys() & {whole, f"{whole}::test_every_artifact_of_the_contract_is_there"}
