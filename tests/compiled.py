"""Small C++ programs of tests, which ask a header."""

import subprocess
from pathlib import Path

from device.emulation import needed

RUNNER = Path(__file__).parents[1] / "src" / "runner"
HEADERS = RUNNER / "serve"


def compiled(folder: Path, source: str, *options: str) -> Path:
    """A program with the headers of the server and the runner; the test is skipped where there is no compiler."""
    path, program = folder / "asked.cpp", folder / "asked"
    path.write_text(source)
    words = [needed("g++", "g++"), "-std=c++17", "-O1", "-I", str(HEADERS), "-I", str(RUNNER), *options]
    words += ["-o", str(program), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program
