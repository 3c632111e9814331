"""What a change can break: the files that differ from a commit, and the files that a test file can run or read.

A test file depends on the closure of its imports (``autotailor.code``), and of each ``conftest.py`` above it whose
fixtures it names. What these files outside the package name and start counts, too: files and folders of the repository
that stand in strings; all code of the package and the workflow where Python is started; ``src/runner`` where other
programs are. So does what lies beside the tests and is not Python. Changes of comments and docstrings break nothing.
"""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from autotailor.code import Code, meaning

WHOLE_SUITE_PASSED = Path("tests") / "passed.txt"
"""Holds the commit at which the whole suite last passed; ``make test-all`` writes it."""
SLOW = Path("tests") / "slow.txt"
"""Lists the tests that are not quick (``tiers``)."""
OWN_LISTS = frozenset({SLOW, WHOLE_SUITE_PASSED})
LANDED = ("origin/main", "main")
FOLDERS = ("src", "tests", "benchmarks", "docs/tools", "workflow/scripts")
PYTHON = frozenset({"src/autotailor", "workflow", "conf", "Snakefile"})
PLACES = "src/autotailor/project/places.py"
CONFIGURATION = frozenset({"workflow", "conf"})
"""What the package finds by ``PLACES``."""
ANY_TEST = frozenset({"pyproject.toml", "requirements.lock", "tests/conftest.py"})
FIXTURE = re.compile(r"^@pytest\.fixture[^\n]*(?:\n@[^\n]*)*\ndef (\w+)", re.MULTILINE)
STARTS_PYTHON = re.compile(r"sys\.executable|[\"']-m[\"']|[\"'](?:autotailor|snakemake|python3?)[\"']")
STARTS_PROGRAMS = re.compile(r"\bsubprocess\b|\bPopen\b")


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails or is missing."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def base_commit(root: Path, asked: str = "1") -> str | None:
    """The commit that a change is compared with; None where none can be found.

    Args:
        root: the repository.
        asked: a commit; ``1`` stands for the one where HEAD left the landed state (``origin/main``, ``main``), and
            where HEAD is itself the landed state, for the one at which the whole suite last passed
            (``tests/passed.txt``).
    """
    if asked != "1":
        return _commit(root, asked)
    head = _commit(root, "HEAD")
    for landed in LANDED:
        found = (_git(root, "merge-base", landed, "HEAD") or "").strip()
        if found and found != head:
            return found
    passed = root / WHOLE_SUITE_PASSED
    return _commit(root, passed.read_text(encoding="utf-8").strip()) if passed.is_file() else None


def _commit(root: Path, name: str) -> str | None:
    return (_git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") or "").strip() or None


def changed_files(root: Path, base: str) -> frozenset[str] | None:
    """Paths that differ in meaning between a commit and the working tree; None where git cannot tell.

    A Python file that is gone is stood for by the ``__init__.py`` beside it, which the users of its folder import.
    """
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", base, "--")
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if differing is None or new is None:
        return None
    found = set(filter(None, new.split("\0")))
    for name in filter(None, differing.split("\0")):
        path = root / name
        if not path.exists():
            found |= {name, (Path(name).parent / "__init__.py").as_posix()}
        elif not _means_the_same(path, _git(root, "show", f"{base}:{name}")):
            found.add(name)
    return frozenset(found)


def _means_the_same(path: Path, before: str | None) -> bool:
    if path.suffix != ".py" or before is None:
        return False
    return meaning(path.read_text(encoding="utf-8")) == meaning(before)


class Reach:
    """The files and folders on which test files depend, by paths relative to the repository.

    Args:
        root: the repository.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._code = Code([root / folder for folder in FOLDERS])
        tracked = (_git(root, "ls-files", "-z") or "").split("\0")
        top = sorted({name.partition("/")[0] for name in tracked if name} - {"tests"})
        self._named = re.compile(rf"[\"'/]({'|'.join(map(re.escape, top))})(?=[\"'/])") if top else None
        self._texts: dict[Path, frozenset[str]] = {}

    def of(self, test: str) -> frozenset[str]:
        """Paths of files, and of folders that stand for all within."""
        entries = self._entries(self._root / test)
        found = set(ANY_TEST)
        for path in (*entries, *self._imported(entries)):
            name = path.relative_to(self._root)
            found |= {name.as_posix(), f"{name.parent.as_posix()}/*", *self._said(path)}
        return frozenset(found | CONFIGURATION if PLACES in found else found)

    def _entries(self, test: Path) -> list[Path]:
        """A test file and the ``conftest.py`` whose fixtures it uses, the nearest first."""
        entries, texts = [test], test.read_text(encoding="utf-8")
        for folder in test.relative_to(self._root).parents:
            conftest = self._root / folder / "conftest.py"
            text = conftest.read_text(encoding="utf-8") if conftest.is_file() else ""
            if "autouse" in text or any(re.search(rf"\b{name}\b", texts) for name in FIXTURE.findall(text)):
                entries.append(conftest)
                texts += text
        return entries

    def _imported(self, entries: list[Path]) -> list[Path]:
        modules = ((name, self._code.module(name)) for name in self._code.closure(*entries))
        paths = [module.path if module else self._root / "src" / name for name, module in modules]
        return [path for path in paths if path.is_file()]

    def _said(self, path: Path) -> frozenset[str]:
        """What the text of a file outside the package says that it reads or starts."""
        if path not in self._texts:
            counts = path.suffix == ".py" and not path.is_relative_to(self._root / "src")
            self._texts[path] = frozenset(self._read(path.read_text(encoding="utf-8"))) if counts else frozenset()
        return self._texts[path]

    def _read(self, text: str) -> set[str]:
        named = set(self._named.findall(text)) if self._named else set()
        found = {(self._root / name).resolve().relative_to(self._root.resolve()).as_posix() for name in named}
        if found & PYTHON or STARTS_PYTHON.search(text):
            found |= PYTHON
        return found | {"src/runner"} if STARTS_PROGRAMS.search(text) else found


def touched(root: Path, tests: Iterable[str], changed: frozenset[str]) -> dict[str, int]:
    """The test files, of those given, that depend on a changed file, and on how many files each depends in all."""
    reach = Reach(root)
    tracked = [_places(Path(name)) for name in (_git(root, "ls-files", "-z") or "").split("\0") if name]
    places = frozenset(place for name in changed for place in _places(Path(name)))
    found = {test: reach.of(test) for test in tests}
    return {test: sum(not of.isdisjoint(file) for file in tracked) for test, of in found.items() if of & places}


def _places(name: Path) -> set[str]:
    """A file and the folders that hold it; ``FOLDER/*`` stands for a file beside tests that is not Python."""
    found = {name.as_posix(), *(parent.as_posix() for parent in name.parents)}
    is_data = name.parts[0] == "tests" and name.suffix != ".py" and name not in OWN_LISTS
    return found | {f"{name.parent.as_posix()}/*"} if is_data else found
