"""What a change can break is told from a commit, imports, and what tests name and start."""

import subprocess
from pathlib import Path

import pytest

from sessions import changes

FILES = {
    "pyproject.toml": "",
    "Snakefile": "",
    "conf/config.yaml": "seed: 1",
    "docs/page.md": "# A page",
    "src/autotailor/__init__.py": "",
    "src/autotailor/low.py": "VALUE = 1\n",
    "src/autotailor/high.py": "from autotailor.low import VALUE\n",
    "src/autotailor/other.py": "",
    "src/runner/main.cpp": "",
    "tests/conftest.py": "",
    "tests/unit/conftest.py": "import autotailor.other\n\n@pytest.fixture(scope='module')\ndef net(): pass\n",
    "src/autotailor/project/__init__.py": "",
    "src/autotailor/project/places.py": "",
    "tests/helper.py": "import autotailor.high\n",
    "tests/unit/test_imports.py": "import helper\n",
    "tests/unit/test_fixture.py": "def test_it(net): pass\n",
    "tests/unit/test_places.py": "import autotailor.project.places\n",
    "tests/unit/test_named.py": "PAGES = ROOT / 'docs'\n",
    "tests/unit/test_configured.py": "PATH = 'conf/config.yaml'\n",
    "tests/unit/test_process.py": "import subprocess\nsubprocess.run([sys.executable, '-c', ''])\n",
    "tests/device/test_program.py": "import subprocess\nsubprocess.run(['g++'])\n",
    "tests/device/program.c": "",
}
TESTS = sorted(name for name in FILES if "test_" in name)
EVERY = {Path(test).stem.removeprefix("test_") for test in TESTS}


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on main, on a branch of its own."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "landed")
    git(tmp_path, "checkout", "-q", "-b", "work")
    return tmp_path


def touched(root: Path) -> set[str]:
    changed = changes.changed_files(root, "main")
    assert changed is not None
    return {Path(test).stem.removeprefix("test_") for test in changes.touched(root, TESTS, changed)}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("src/autotailor/low.py", {"imports", "process", "configured"}),
        ("src/autotailor/other.py", {"fixture", "process", "configured"}),
        ("tests/unit/conftest.py", {"fixture"}),
        ("src/runner/main.cpp", {"process", "program"}),
        ("docs/page.md", {"named"}),
        ("conf/config.yaml", {"configured", "places", "process"}),
        ("tests/helper.py", {"imports"}),
        ("tests/conftest.py", EVERY),
        ("pyproject.toml", EVERY),
        ("tests/device/program.c", {"program"}),
        ("tests/device/new.txt", {"program"}),
        ("tests/slow.txt", set()),
        ("CHANGELOG.md", set()),
    ],
)
def test_a_change_touches_what_imports_names_or_starts_it(repository: Path, name: str, found: set[str]) -> None:
    (repository / name).write_text(f"{FILES.get(name, '')}CHANGED = 2\n")
    assert touched(repository) == found
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "a change is committed")
    assert touched(repository) == found


def test_what_depends_on_more_files_is_told_by_their_number(repository: Path) -> None:
    found = changes.touched(repository, TESTS, frozenset({"pyproject.toml"}))
    assert found["tests/unit/test_places.py"] < found["tests/unit/test_process.py"]
    assert found["tests/unit/test_process.py"] < len(FILES)


def test_a_comment_touches_nothing(repository: Path) -> None:
    (repository / "src/autotailor/low.py").write_text("VALUE = 1  # one\n")
    assert touched(repository) == set()


def test_a_module_that_is_gone_touches_what_imports_its_folder(repository: Path) -> None:
    (repository / "src/autotailor/low.py").unlink()
    assert "imports" in touched(repository)


def test_a_change_is_compared_with_the_commit_where_it_left_the_landed_state(repository: Path) -> None:
    landed = git(repository, "rev-parse", "main").strip()
    git(repository, "commit", "-q", "--allow-empty", "-m", "work")
    assert changes.base_commit(repository) == landed
    git(repository, "checkout", "-q", "--detach")
    assert changes.base_commit(repository) == landed
    assert changes.base_commit(repository, "HEAD") == git(repository, "rev-parse", "HEAD").strip()


def test_the_landed_state_itself_is_compared_with_what_passed_last(repository: Path) -> None:
    passed = git(repository, "rev-parse", "main").strip()
    git(repository, "commit", "-q", "--allow-empty", "-m", "work")
    git(repository, "checkout", "-q", "-B", "main")
    assert changes.base_commit(repository) is None
    (repository / "tests/passed.txt").write_text(f"{passed}\n")
    assert changes.base_commit(repository) == passed
    (repository / "tests/passed.txt").write_text("0123456789012345678901234567890123456789\n")
    assert changes.base_commit(repository) is None


def test_without_git_nothing_is_told(tmp_path: Path) -> None:
    assert changes.base_commit(tmp_path) is None
    assert changes.changed_files(tmp_path, "HEAD") is None
