"""Builds the runner: ``python src/runner/build.py [host] [aarch64]`` (``make runner``: both).

Fetches ncnn's source distribution (version and hash in ``ncnn.txt``), unpacks it, and leaves
``build/runner/TARGET/autotailor-runner``. What is up to date is left alone: ninja builds what changed in the runner's
sources, and a changed ``ncnn.txt`` starts from the beginning.

A build takes minutes, so each binary is also kept in the user's cache folder, under the hash of everything that the
binary is made from (``cache_key``). Another checkout of the same sources takes its binary from there.
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
BINARY = "autotailor-runner"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "autotailor" / "runner"


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
        processor = Path("/proc/cpuinfo")  # AVX-512 is a quarter of the build, which other processors never run
        lacks = processor.exists() and "avx512f" not in processor.read_text()
        return [*(["-DNCNN_AVX512=OFF"] if lacks else []), *os.environ.get("RUNNER_OPTIONS", "").split()]
    if ndk := os.environ.get("ANDROID_NDK"):
        file = Path(ndk) / "build" / "cmake" / "android.toolchain.cmake"
        if not file.exists():
            sys.exit(f"ANDROID_NDK is {ndk}, but {file} does not exist: set it to an NDK's folder, or unset it")
        return [f"-DCMAKE_TOOLCHAIN_FILE={file}", "-DANDROID_ABI=arm64-v8a", "-DANDROID_PLATFORM=android-24"]
    require(f"{CROSS}-g++", f"g++-{CROSS}")
    compilers = [f"-DCMAKE_C_COMPILER={CROSS}-gcc", f"-DCMAKE_CXX_COMPILER={CROSS}-g++"]
    return ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", *compilers]


def compiler(target: str) -> str:
    """What the target's compiler says of itself: another compiler gives another binary."""
    if target != "host" and (ndk := os.environ.get("ANDROID_NDK")):
        return (Path(ndk) / "source.properties").read_text()
    name = "g++" if target == "host" else f"{CROSS}-g++"
    return subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout


def cache_key(target: str) -> str:
    """Hash of what a binary is made from: the files of this folder (this one and ncnn's pin too), target, compiler."""
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in {".txt", ".cpp", ".h", ".py"})
    parts = [target, *toolchain(target), compiler(target), *(f"{path.name}\n{path.read_text()}" for path in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def place(source: Path, target: Path) -> None:
    """Copies a binary; another process sees it whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        copied = Path(shutil.copy2(source, folder))
        copied.replace(target)


def obtain(target: str) -> Path:
    """The binary of one target: the one in the cache where there is one, else built and put there."""
    binary, cached = BUILD / target / BINARY, CACHE / cache_key(target) / BINARY
    if not cached.exists():
        place(build(target), cached)
    elif not binary.exists() or binary.read_bytes() != cached.read_bytes():
        place(cached, binary)
    return binary


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
    if not stamp.exists():
        date = pinned().split()[0].rpartition(".")[2]
        command = ["cmake", "-S", str(SOURCES), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        run([*command, f"-DNCNN_SOURCE={source}", f"-DNCNN_VERSION={date}", *options], f"cmake for {target}")
        stamp.write_text(wanted)
    run(["ninja", "-C", str(folder), *os.environ.get("RUNNER_JOBS", "").split(), BINARY], f"{target}")
    return folder / BINARY


def run(command: list[str], what: str) -> None:
    """Runs a command; ends with its exit code where it fails."""
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        sys.exit(f"the runner cannot be built ({what}, exit code {code}); see above")


if __name__ == "__main__":
    for name in sys.argv[1:] or TARGETS:
        if name not in TARGETS:
            sys.exit(f"unknown target {name}; known are {', '.join(TARGETS)}")
        print(obtain(name))
