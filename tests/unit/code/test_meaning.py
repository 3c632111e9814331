import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor.code import meaning
from autotailor.code.meaning import tree_meaning

ROOT = Path(__file__).parents[3]
CODE = '''
class Net:
    """What it is."""

    #: comment
    size = 3
    """What size is."""

    def run(self, x):
        """How it runs."""
        return f"{x:>{self.size}} of {self.size!r}"
'''


@pytest.mark.parametrize(
    "other",
    [
        CODE.replace("What it is", "Another docstring"),
        CODE.replace('    """What size is."""\n', ""),
        CODE.replace("#: comment", ""),
        CODE.replace("size = 3", "size  =  (3)"),
        CODE.replace('        """How it runs."""\n', ""),
        CODE + "\n\nif TYPE_CHECKING:\n    from elsewhere import Thing\n",
    ],
    ids=["docstring", "docstring of an attribute", "comment", "layout", "no docstring", "for type checkers"],
)
def test_what_nothing_runs_does_not_count(other: str) -> None:
    assert other != CODE
    assert meaning(other) == meaning(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size = 3", "size = 4"),
        ("size = 3", "size = 3.0"),
        ("size = 3", "size = '3'"),
        ("size = 3", "size = True"),
        (" of ", " from "),
        ("!r", "!s"),
        (":>", ":<"),
        ("class Net", "class Net(Base)"),
        ("def run(self, x)", "def run(self, x=None)"),
        ("def run(self, x)", "def run(self, *, x)"),
    ],
)
def test_every_statement_counts(old: str, new: str) -> None:
    assert meaning(CODE.replace(old, new)) != meaning(CODE)


def test_a_string_that_is_used_is_no_docstring() -> None:
    assert meaning("def f():\n    return 'a'\n") != meaning("def f():\n    return 'b'\n")
    assert meaning("x = 'a'\n") != meaning("x = 'b'\n")
    assert meaning("f('a')\n") != meaning("f('b')\n")


def test_what_is_no_python_counts_as_it_is() -> None:
    assert meaning("not python (") != meaning("not python  (")


def test_fields_that_only_some_pythons_have_do_not_count() -> None:
    """3.12 gave functions and classes ``type_params``; trees of 3.13 may lack fields that are empty."""
    tree = ast.parse(CODE)
    expected = tree_meaning(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.type_params = []  # type: ignore[union-attr]
            del node.decorator_list
        if isinstance(node, ast.Constant):
            node.kind = None
    tree.type_ignores = []
    assert tree_meaning(tree) == expected


def test_formatted_strings_count_alike_however_a_python_cuts_them() -> None:
    whole = ast.parse("f'ab{x}'")
    cut = ast.parse("f'ab{x}'")
    strings = [node for node in ast.walk(cut) if isinstance(node, ast.JoinedStr)]
    strings[0].values[:1] = [ast.Constant("a"), ast.Constant(""), ast.Constant("b")]
    assert tree_meaning(cut) == tree_meaning(whole)
    assert meaning("f'{x:}'") == meaning("f'{x}'")


def other_pythons() -> list[str]:
    """Interpreters of this machine, of other versions from 3.11 on."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    found += [str(path) for path in sorted(kept.glob("3.1[1-9]*/bin/python"))]
    versions = {}
    for path in filter(None, found):
        asked = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            versions[asked.stdout] = path
    return [path for version, path in versions.items() if version != f"{sys.version_info[0]} {sys.version_info[1]}\n"]


def test_every_python_of_this_machine_finds_the_same_meanings() -> None:
    pythons = other_pythons()
    if not pythons:
        pytest.skip("no other Python from 3.11 on is installed here")
    program = (
        "import pathlib, runpy, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "meaning = runpy.run_path('src/autotailor/code/meaning.py')['meaning']\n"
        "for path in sorted(pathlib.Path('src/autotailor').rglob('*.py')):\n"
        "    print(path, meaning(path.read_text(encoding='utf-8')))\n"
    )
    said = {
        path: subprocess.run([path, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for path in (sys.executable, *pythons)
    }
    assert len(said[sys.executable].splitlines()) > 100
    assert len(set(said.values())) == 1
