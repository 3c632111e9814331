"""The runner's build: a binary is kept for other checkouts under the hash of what it is made from."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "runner"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``src/runner/build.py`` in a checkout of its own, whose compilation only counts."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing: apt-get install g++")
    copied = tmp_path / "checkout" / "src" / "runner"
    shutil.copytree(SOURCES, copied, ignore=shutil.ignore_patterns("__pycache__"))
    specification = importlib.util.spec_from_file_location("runner_build", copied / "build.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    module.compiled = []

    def compile_target(target: str) -> Path:
        module.compiled.append(target)
        binary = module.BUILD / target / module.BINARY
        binary.parent.mkdir(parents=True, exist_ok=True)
        binary.write_bytes(f"{target} {len(module.compiled)}".encode())
        binary.chmod(0o755)
        return binary

    monkeypatch.setattr(module, "build", compile_target)
    return module


def test_another_checkout_of_the_same_sources_compiles_nothing(build: ModuleType) -> None:
    binary = build.obtain("host")
    content = binary.read_bytes()
    shutil.rmtree(build.BUILD)
    assert build.obtain("host") == binary
    assert binary.read_bytes() == content
    assert binary.stat().st_mode & 0o100
    assert build.compiled == ["host"]


@pytest.mark.parametrize("name", ["main.cpp", "blocks.h", "CMakeLists.txt", "ncnn.txt"])
def test_a_changed_source_is_compiled(build: ModuleType, name: str) -> None:
    build.obtain("host")
    with (build.SOURCES / name).open("a") as stream:
        stream.write("\n")
    build.obtain("host")
    assert build.compiled == ["host", "host"]


def test_a_stale_binary_of_this_checkout_is_replaced(build: ModuleType) -> None:
    binary = build.obtain("host")
    binary.write_bytes(b"of older sources")
    build.obtain("host")
    assert binary.read_bytes() == b"host 1"
