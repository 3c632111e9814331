"""The second half of docs/guides/pool.md: its commands, its client, its CMake file."""

import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from device.emulation import needed
from documents import ROOT, Block, blocks
from pools import CLASSES, SIDES, TinyPool, tiny_pool
from served import SOURCES, Serving, serve_binary

PAGE = ROOT / "docs" / "guides" / "pool.md"
POOL = Path("results") / "resnet_digits" / "host" / "pool"
LARGEST = max(SIDES)


def block(language: str, name: str) -> Block:
    (found,) = [each for each in blocks(PAGE) if each.language == language and each.text.endswith(f"::{name}")]
    return found


@pytest.fixture
def project() -> Iterator[Path]:
    """A user's folder; pytest's own folders are so long that no Unix socket fits into a pool below them."""
    with tempfile.TemporaryDirectory(prefix="guide-") as folder:
        yield Path(folder)


@pytest.fixture
def pool(project: Path) -> TinyPool:
    return tiny_pool(project / POOL)


def test_the_commands_of_the_guide_serve_a_pool(pool: TinyPool, project: Path) -> None:
    code = block("sh", "test_the_commands_of_the_guide_serve_a_pool").code
    checked, served = (shlex.split(line) for line in code.splitlines())
    assert checked[0] == served[0] == "build/runner/host/autotailor-serve"
    done = subprocess.run([serve_binary(), *checked[1:]], cwd=project, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == len(SIDES)
    folder, *options = served[1:]
    with Serving([str(serve_binary())], project / folder, *options) as server, server.client() as client:
        assert client.status()["settings"]["deadline_ms"] == float(options[-1])


def test_the_client_of_the_guide_asks_the_server(
    pool: TinyPool, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = block("python", "test_the_client_of_the_guide_asks_the_server").code
    assert "(3, 32, 32)" in program
    program = program.replace("(3, 32, 32)", f"(3, {LARGEST}, {LARGEST})")
    monkeypatch.chdir(project)
    with Serving([str(serve_binary())], pool.folder):
        exec(compile(program, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    expected = pool.logits(f"member_{len(SIDES) - 1:02}", np.zeros((3, LARGEST, LARGEST), np.float32))
    assert said.startswith(f"{expected.argmax()} {len(SIDES) - 1} ")
    assert "slowdown_compute" in said
    assert "autotailor_inferences_total" in said


def test_the_cmake_file_of_the_guide_builds_the_example(pool: TinyPool, tmp_path: Path) -> None:
    project, built = tmp_path / "app", tmp_path / "built"
    project.mkdir()
    text = block("cmake", "test_the_cmake_file_of_the_guide_builds_the_example").code
    (project / "CMakeLists.txt").write_text(f"{text}\n")
    (project / "example.cpp").write_text((SOURCES / "example.cpp").read_text())
    cmake, folder = needed("cmake", "cmake"), serve_binary().parent
    for words in ([cmake, "-S", project, "-B", built, f"-DAUTOTAILOR={folder}"], [cmake, "--build", built]):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    picture = np.random.default_rng(1).normal(size=(3, LARGEST, LARGEST)).astype(np.float32)
    words = [str(built / "app"), str(pool.folder), "1000"]
    said = subprocess.run(words, input=picture.tobytes(), capture_output=True, check=True).stdout.decode()
    expected = pool.logits(f"member_{len(SIDES) - 1:02}", picture)
    assert said.startswith(f"class {expected.argmax()} of {CLASSES}, ")
