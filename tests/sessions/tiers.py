"""The quick tier: ``pytest --quick`` (``make test``) leaves out the tests that ``tests/slow.txt`` lists.

A file that is named on the command line runs nevertheless. With ``--changed`` (``make test CHANGED=1``), those of them
run that a change can break (``changes``), as many as ``SPARE`` allows: first those whose own file has changed, then
those that depend on the fewest files. A whole pipeline depends on everything, and comes last. What a change can break
and is left to ``make test-all`` is listed at the end of the run. Where the change cannot be told, everything runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sessions import changes

SPARE = 60.0
"""Listed seconds of slow tests that one change may cost; two workers take about half of that."""
LEFT_OUT = pytest.StashKey[frozenset[str]]()
HEADER = pytest.StashKey[str]()
LEFT_TO_ALL = pytest.StashKey[Mapping[str, float]]()


def slow(root: Path) -> dict[str, float]:
    """What ``tests/slow.txt`` lists: paths of test files, and ids of tests without parameters, with their seconds."""
    path = root / changes.SLOW
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    listed = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: float(seconds) for seconds, name in listed}


def add_option(parser: pytest.Parser) -> None:
    """Adds the options. Conftest calls this function: options are read before modules register."""
    parser.addoption("--quick", action="store_true", help="leave out the tests that tests/slow.txt lists")
    parser.addoption(
        "--changed", metavar="COMMIT", default="", help="with --quick: run those of them that depend on what changed "
        "since COMMIT; 1 stands for the landed state",
    )  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """Which of the listed tests are left out.

    Attributes:
        left_out: paths of files, and ids of tests.
        header: a line that says why.
        left_to_all: those of them that the change can break, with their seconds.
    """

    left_out: frozenset[str]
    header: str
    left_to_all: Mapping[str, float] = field(default_factory=dict)


def pytest_configure(config: pytest.Config) -> None:
    """Decides what is left out; a worker of pytest-xdist is told, so that all workers agree."""
    if hasattr(config, "workerinput"):
        config.stash[LEFT_OUT] = frozenset(config.workerinput.get("left_out", ()))
    elif config.getoption("--quick"):
        found = decide(config.rootpath, config.getoption("--changed"))
        config.stash[LEFT_OUT], config.stash[HEADER] = found.left_out, found.header
        config.stash[LEFT_TO_ALL] = found.left_to_all


def decide(root: Path, asked: str, spare: float = SPARE) -> Decision:
    """What is left out of a quick run.

    Args:
        root: the repository.
        asked: what ``--changed`` says; without it, all that is listed is left out.
        spare: listed seconds of slow tests that may run.
    """
    listed = slow(root)
    if not asked:
        header = f"quick: {_told(listed)} of {changes.SLOW} are left out; `make test-all` runs them"
        return Decision(frozenset(listed), header)
    base = changes.base_commit(root, asked)
    changed = changes.changed_files(root, base) if base else None
    if changed is None:
        return Decision(frozenset(), "quick: no commit to compare with is known here, so nothing is left out")
    closures = changes.touched(root, {_file(name) for name in listed}, changed)
    touched = {name: seconds for name, seconds in listed.items() if _file(name) in closures}
    runs = _affordable(touched, closures, changed, spare)
    left_to_all = {name: seconds for name, seconds in touched.items() if name not in runs}
    header = (
        f"quick: of {_told(listed)} of {changes.SLOW}, {len(touched)} depend on the {len(changed)} files that changed "
        f"since {(base or '')[:12]}, and {len(runs)} of them run"
    )
    return Decision(frozenset(listed) - runs, header, left_to_all)


def _affordable(
    touched: Mapping[str, float], closures: Mapping[str, int], changed: frozenset[str], spare: float
) -> frozenset[str]:
    """As many tests as time allows: those whose own file has changed, then those that depend on the fewest files."""

    def rank(name: str) -> tuple[bool, int, float, str]:
        return _file(name) not in changed, closures[_file(name)], touched[name], name

    runs = set()
    for name in sorted(touched, key=rank):
        if touched[name] <= spare:
            runs.add(name)
            spare -= touched[name]
    return frozenset(runs)


def _file(name: str) -> str:
    return name.partition("::")[0]


def _told(listed: Mapping[str, float]) -> str:
    return f"{len(listed)} entries ({sum(listed.values()) / 60:.0f} minutes)"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker what is left out."""
    node.workerinput["left_out"] = sorted(node.config.stash.get(LEFT_OUT, frozenset()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Does not even import a file that is left out."""
    left_out = config.stash.get(LEFT_OUT, frozenset())
    if not left_out or not collection_path.is_relative_to(config.rootpath):
        return None
    return collection_path.relative_to(config.rootpath).as_posix() in left_out or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out single tests, with all their parameters."""
    left_out = config.stash.get(LEFT_OUT, frozenset())
    dropped = [item for item in items if item.nodeid.partition("[")[0] in left_out]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in set(dropped)]


def pytest_report_header(config: pytest.Config) -> list[str]:
    header = config.stash.get(HEADER, "")
    return [header] if header else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left = config.stash.get(LEFT_TO_ALL, {})
    if left:
        terminalreporter.section("what the change can break and `make test-all` runs")
        for name, seconds in sorted(left.items()):
            terminalreporter.line(f"{seconds:.0f} s {name}")
