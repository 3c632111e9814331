"""The wheel holds what a run needs, once, and says the same of each rule's code as the clone."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from autotailor.code import rule_code, rule_modules

ROOT = Path(__file__).parents[2]
SHARED = {"workflow": "workflow", "conf": "conf", "src/runner": "runner"}
PARTS = (
    "src",
    "workflow",
    "conf",
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "requirements.lock",
)
RULES = ("compile", "report")
BUILD = """
import sys
from setuptools import build_meta
for folder, build in (("wheels", build_meta.build_wheel), ("sources", build_meta.build_sdist)):
    print(build(f"../{folder}"), file=sys.stderr)
"""
DIGESTS = """
import json, pathlib, sys
from autotailor.code import rule_code, rule_modules
from autotailor.project import places
code = rule_code(places.ROOT)
print(json.dumps([str(places.ROOT), {rule: rule_modules(code, places.ROOT, rule) for rule in sys.argv[1:]}]))
"""


def files(folder: Path) -> set[str]:
    """Relative paths of the files in a folder, but for what Python and editors leave there."""
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return {
        path.as_posix()
        for path in found
        if "__pycache__" not in path.parts and not any(part.startswith(".") for part in path.parts)
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a source distribution, made of a copy of the clone that has an older build's rests."""
    folder = tmp_path_factory.mktemp("built")
    checkout = folder / "checkout"
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, checkout / name)
    for rest in ("autotailor/gone.py", "autotailor/share/workflow/rules/gone.smk"):
        (checkout / "build" / "lib" / rest).parent.mkdir(parents=True, exist_ok=True)
        (checkout / "build" / "lib" / rest).touch()
    for name in ("wheels", "sources"):
        (folder / name).mkdir()
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def unpacked(built: Path) -> Path:
    """The wheel's content, as in ``site-packages``."""
    (wheel,) = (built / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(built / "site")
    return built / "site"


def test_the_wheel_holds_workflow_configuration_and_runner_and_nothing_else_beside_the_modules(unpacked: Path) -> None:
    expected = {f"{name}/{path}" for folder, name in SHARED.items() for path in files(ROOT / folder)}
    assert files(unpacked / "autotailor" / "share") == expected
    assert {"workflow/Snakefile", "workflow/rules/common.smk", "conf/config.yaml", "runner/main.cpp"} <= expected


def test_the_wheel_holds_the_modules_and_their_data(unpacked: Path) -> None:
    found = {path for path in files(unpacked / "autotailor") if not path.startswith("share/")}
    assert found == files(ROOT / "src" / "autotailor")
    assert {path.name for path in unpacked.iterdir() if path.suffix != ".dist-info"} == {"autotailor"}


def test_the_wheel_gives_the_command(unpacked: Path) -> None:
    (entries,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "autotailor = autotailor.__main__:main" in entries.read_text()


def test_the_source_distribution_holds_what_the_wheel_is_made_of(built: Path) -> None:
    (archive,) = (built / "sources").iterdir()
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {f"{folder}/{path}" for folder in (*SHARED, "src/autotailor") for path in files(ROOT / folder)} <= names
    assert {"setup.py", "pyproject.toml"} <= names


def test_rules_of_the_wheel_run_the_code_of_the_clone(unpacked: Path, tmp_path: Path) -> None:
    """What a clone has computed is not computed again by an installed package of the same version, or the reverse.

    Libraries lie beside an installed package; they are no code of a rule there either.
    """
    library = unpacked / "timm" / "__init__.py"
    library.parent.mkdir()
    library.touch()
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    command = [sys.executable, "-c", DIGESTS, *RULES]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    shutil.rmtree(library.parent)
    assert done.returncode == 0, done.stderr
    root, modules = json.loads(done.stdout)
    assert root == str(unpacked / "autotailor" / "share")
    code = rule_code(ROOT)
    assert modules == {rule: rule_modules(code, ROOT, rule) for rule in RULES}
