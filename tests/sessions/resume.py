"""A long run of the tests goes on where it was interrupted: ``pytest --resume`` (``make test-full``).

Each test that passes is noted at once in ``build/test-full/DIGEST``, where the digest is that of everything tests can
depend on in this repository. Another ``--resume`` of the same code leaves these tests out. A change of the code, or
``rm -r build/test-full``, begins anew.
"""

import hashlib
from pathlib import Path
from typing import Any

import pytest

FOLDERS = ("benchmarks", "conf", "docs", "src", "tests", "workflow")
FILES = ("CONTRIBUTING.md", "README.md", "Snakefile", "pyproject.toml", "requirements.lock")
PASSED = pytest.StashKey[set[str]]()
JOURNAL = pytest.StashKey[Path]()


def code_digest(root: Path) -> str:
    """Hash of the names and contents of all files that a test may depend on."""
    found = [path for folder in FOLDERS for path in (root / folder).rglob("*") if "__pycache__" not in path.parts]
    files = [path for path in (*found, *(root / name for name in FILES)) if path.is_file() and path.suffix != ".csv"]
    summed = hashlib.sha256()
    for path in sorted(files):
        summed.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return summed.hexdigest()[:16]


def add_option(parser: pytest.Parser) -> None:
    """Adds the option. Conftest names this function as its own hook: options are read before modules register."""
    parser.addoption("--resume", action="store_true", help="leave out the tests that passed in earlier --resume runs")


def pytest_configure(config: pytest.Config) -> None:
    """Reads which tests have passed; a worker of pytest-xdist is told, so that all workers agree."""
    if not config.getoption("--resume"):
        return
    if hasattr(config, "workerinput"):
        config.stash[PASSED] = set(config.workerinput["passed"])
        return
    journal = config.rootpath / "build" / "test-full" / code_digest(config.rootpath)
    journal.parent.mkdir(parents=True, exist_ok=True)
    config.stash[JOURNAL] = journal
    config.stash[PASSED] = set(journal.read_text(encoding="utf-8").splitlines()) if journal.exists() else set()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker which tests have passed."""
    node.workerinput["passed"] = sorted(node.config.stash.get(PASSED, set()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what has passed."""
    passed = config.stash.get(PASSED, set())
    left_out = [item for item in items if item.nodeid in passed]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in passed]


class Recorder:
    """Notes each test that passed, once nothing of it can fail any more."""

    def __init__(self, journal: Path) -> None:
        self.journal, self.called = journal, set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.called.add(report.nodeid)
        if report.when == "teardown" and report.passed and report.nodeid in self.called:
            with self.journal.open("a", encoding="utf-8") as stream:
                stream.write(f"{report.nodeid}\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    journal = session.config.stash.get(JOURNAL, None)
    if journal is not None:
        session.config.pluginmanager.register(Recorder(journal))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that finds everything passed already is a success, not a run without tests."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(PASSED, set()):
        session.exitstatus = pytest.ExitCode.OK


def pytest_report_header(config: pytest.Config) -> list[str]:
    passed = config.stash.get(PASSED, set())
    return [f"resume: {len(passed)} tests of this code have passed in earlier runs and are left out"] if passed else []
