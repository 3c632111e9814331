"""Builds the runner: ``python src/runner/build.py [host] [aarch64]`` (``make runner``: both).

Fetches ncnn's source distribution (version and hash in ``ncnn.txt``), unpacks it, and leaves
``build/runner/TARGET/autotailor-runner``. What is up to date is left alone: ninja builds what changed in the runner's
sources, and a changed ``ncnn.txt`` starts from the beginning.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
BUILD = SOURCES.parent.parent / "build" / "runner"
PIN = SOURCES / "ncnn.txt"
TARGETS = ("host", "aarch64")
CROSS = "aarch64-linux-gnu"


def pinned() -> str:
    """The requirement, with its hash."""
    return next(line for line in PIN.read_text().splitlines() if line and not line.startswith("#"))


def require(program: str, package: str) -> None:
    """Names a missing program with the command that installs it."""
    if shutil.which(program) is None:
        sys.exit(f"{program} is missing: install it with: apt-get install -y {package}")


def ncnn_source() -> Path:
    """The unpacked source distribution, fetched where it is missing.

    pip verifies the hash and unpacks. It then fails to build metadata, because ncnn's setup.py stamps today's date
    on its version; the unpacked source is all that is wanted, so it is kept (``--no-clean``).
    """
    target = BUILD / f"ncnn-{hashlib.sha256(pinned().encode()).hexdigest()[:12]}"
    if target.exists():
        return target
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        options = ["--no-clean", "--no-deps", "--no-build-isolation", "--no-binary", "ncnn", "--require-hashes"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, "--dest", f"{folder}/out", "--requirement", str(PIN)],
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        found = [path.parent for path in Path(folder).glob("pip-download-*/ncnn_*/CMakeLists.txt")]
        if not found or not (found[0] / "src" / "net.cpp").exists():
            sys.exit(
                f"pip cannot fetch the source of {pinned().split()[0]}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        found[0].rename(target)
    return target


def toolchain(target: str) -> list[str]:
    """CMake's options for a target."""
    if target == "host":
        require("g++", "g++")
        return []
    if ndk := os.environ.get("ANDROID_NDK"):
        file = Path(ndk) / "build" / "cmake" / "android.toolchain.cmake"
        if not file.exists():
            sys.exit(f"ANDROID_NDK is {ndk}, but {file} does not exist: set it to an NDK's folder, or unset it")
        return [f"-DCMAKE_TOOLCHAIN_FILE={file}", "-DANDROID_ABI=arm64-v8a", "-DANDROID_PLATFORM=android-24"]
    require(f"{CROSS}-g++", f"g++-{CROSS}")
    compilers = [f"-DCMAKE_C_COMPILER={CROSS}-gcc", f"-DCMAKE_CXX_COMPILER={CROSS}-g++"]
    return ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", *compilers]


def build(target: str) -> Path:
    """Builds one target; returns the binary."""
    require("cmake", "cmake")
    require("ninja", "ninja-build")
    options = toolchain(target)
    source, folder = ncnn_source(), BUILD / target
    stamp = folder / "configured"
    wanted = "\n".join([str(source), *options])
    if folder.exists() and (not stamp.exists() or stamp.read_text() != wanted):
        shutil.rmtree(folder)
    if not folder.exists():
        date = pinned().split()[0].rpartition(".")[2]
        command = ["cmake", "-S", str(SOURCES), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        run([*command, f"-DNCNN_SOURCE={source}", f"-DNCNN_VERSION={date}", *options], f"cmake for {target}")
        stamp.write_text(wanted)
    run(["ninja", "-C", str(folder), *os.environ.get("RUNNER_JOBS", "").split(), "autotailor-runner"], f"{target}")
    return folder / "autotailor-runner"


def run(command: list[str], what: str) -> None:
    """Runs a command; ends with its exit code where it fails."""
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        sys.exit(f"the runner cannot be built ({what}, exit code {code}); see above")


if __name__ == "__main__":
    for name in sys.argv[1:] or TARGETS:
        if name not in TARGETS:
            sys.exit(f"unknown target {name}; known are {', '.join(TARGETS)}")
        print(build(name))
