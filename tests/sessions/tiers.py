"""The quick tier: ``pytest --quick`` (``make test``) leaves out the tests that ``tests/slow.txt`` lists.

A file that is named on the command line runs nevertheless. With ``--changed`` (``make test CHANGED=1``), only those are
left out that a change cannot break (``changes``); where the change cannot be told, none is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sessions import changes

LEFT_OUT = pytest.StashKey[frozenset[str]]()
HEADER = pytest.StashKey[str]()


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


def pytest_configure(config: pytest.Config) -> None:
    """Decides what is left out; a worker of pytest-xdist is told, so that all workers agree."""
    if hasattr(config, "workerinput"):
        config.stash[LEFT_OUT] = frozenset(config.workerinput.get("left_out", ()))
    elif config.getoption("--quick"):
        config.stash[LEFT_OUT], config.stash[HEADER] = decide(config.rootpath, config.getoption("--changed"))


def decide(root: Path, asked: str) -> tuple[frozenset[str], str]:
    """The listed tests that are left out, and a line that says why."""
    listed = slow(root)
    if not asked:
        return frozenset(listed), f"quick: {_told(listed)} of {changes.SLOW} are left out; `make test-all` runs them"
    base = changes.base_commit(root, asked)
    changed = changes.changed_files(root, base) if base else None
    if changed is None:
        return frozenset(), "quick: no commit to compare with is known here, so nothing is left out"
    files = changes.touched(root, {name.partition("::")[0] for name in listed}, changed)
    left = {name: seconds for name, seconds in listed.items() if name.partition("::")[0] not in files}
    reason = f"they do not depend on the {len(changed)} files that changed since {base[:12] if base else ''}"
    return frozenset(left), f"quick: {len(left)} of {_told(listed)} of {changes.SLOW} are left out: {reason}"


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
