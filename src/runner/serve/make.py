"""Builds what serves pools: ``python src/runner/serve/make.py [host] [aarch64] [sanitized]`` (``make serve``).

Leaves ``autotailor-serve``, ``libautotailor.so`` and ``autotailor.h`` in ``build/runner/TARGET``, beside the runner.
They are made from ncnn as the runner's build has compiled it (``../build.py``), so that a member runs as it was
measured; the runner itself stays as it is, whatever changes here. ``sanitized`` is the host's with AddressSanitizer and
UBSan.

What is built is also kept in the user's cache folder, as the runner is, and so is the compiled ncnn.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
_specification = importlib.util.spec_from_file_location("runner_build", SOURCES.parent / "build.py")
assert _specification is not None
assert _specification.loader is not None
runner = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(runner)

TARGETS = ("host", "aarch64", "sanitized")
BINARY, LIBRARY, HEADER = "autotailor-serve", "libautotailor.so", "autotailor.h"
ARCHIVE = "libncnn.a"


def base(target: str) -> str:
    """The target of the runner whose ncnn a target is made from."""
    return "host" if target == "sanitized" else target


def cache_key(target: str) -> str:
    """Hash of what the binaries are made from: the runner's files, and all of this folder."""
    files = sorted(path for path in SOURCES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    parts = [target, runner.cache_key(base(target))]
    parts += [f"{path.relative_to(SOURCES)}\n{path.read_text()}" for path in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def cached_ncnn(target: str) -> Path:
    """The folder in the cache for the compiled ncnn and its generated headers."""
    return Path(runner.CACHE, runner.cache_key(base(target)), "ncnn")


def ncnn(target: str) -> Path:
    """The folder with the compiled ncnn; compiled where it is not in the cache."""
    cached = cached_ncnn(target)
    if not (cached / ARCHIVE).exists():
        compiled = runner.build(base(target)).parent / "ncnn" / "src"
        for path in (*compiled.glob("*.h"), compiled / ARCHIVE):  # the archive last: with it, all is there
            runner.place(path, cached / path.name)
    return cached


@contextmanager
def alone(target: str) -> Iterator[None]:
    """Waits until no other process builds the same target in this checkout."""
    Path(runner.BUILD).mkdir(parents=True, exist_ok=True)
    with Path(runner.BUILD, f".{target}-serve.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def obtain(target: str) -> Path:
    """The server of one target, with library and header beside it: from the cache, or built and put there."""
    with alone(target):
        return _obtain(target)


def _obtain(target: str) -> Path:
    folder, cached = Path(runner.BUILD) / target, Path(runner.CACHE) / cache_key(target)
    if not (cached / BINARY).exists():
        built = build(target)
        for name in (LIBRARY, BINARY):  # the binary last
            runner.place(built / name, cached / name)
    for source in (cached / BINARY, cached / LIBRARY, SOURCES / HEADER):
        placed = folder / source.name
        if not placed.exists() or placed.read_bytes() != source.read_bytes():
            runner.place(source, placed)
    return folder / BINARY


def build(target: str) -> Path:
    """Builds one target; returns the folder with what was built."""
    runner.require("cmake", "cmake")
    runner.require("ninja", "ninja-build")
    options = [f"-DNCNN_SOURCE={runner.ncnn_source()}", f"-DNCNN_BUILD={ncnn(target)}", *runner.toolchain(base(target))]
    options.append(f"-DSANITIZE={'ON' if target == 'sanitized' else 'OFF'}")
    folder = Path(runner.BUILD) / f"{target}-serve"
    stamp = folder / "configured"
    wanted = "\n".join([str(SOURCES), *options])
    if folder.exists() and (not stamp.exists() or stamp.read_text() != wanted):
        shutil.rmtree(folder)
    if not stamp.exists():
        runner.run(["cmake", "-S", str(SOURCES), "-B", str(folder), "-G", "Ninja", *options], f"cmake for {target}")
        stamp.write_text(wanted)
    runner.run(["ninja", "-C", str(folder), *os.environ.get("RUNNER_JOBS", "").split()], f"serve for {target}")
    return folder


if __name__ == "__main__":
    for name in sys.argv[1:] or TARGETS[:2]:
        if name not in TARGETS:
            sys.exit(f"unknown target {name}; known are {', '.join(TARGETS)}")
        print(obtain(name))
