"""Devices with another processor than this computer's: their programs run under QEMU."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("emulated_exec.c")
QEMU = "qemu-aarch64-static"


def emulate_aarch64(binaries: Path) -> dict[str, str]:
    """Makes commands of a device see an aarch64: what their environment needs.

    Args:
        binaries: a folder at the front of the device's path.
    """
    qemu, compiler = needed(QEMU, "qemu-user-static"), needed("gcc", "gcc")
    uname = f'#!/bin/sh\n[ "$1" = -m ] && echo aarch64 || exec {shutil.which("uname")} "$@"\n'
    (binaries / "uname").write_text(uname)
    (binaries / "uname").chmod(0o755)
    library = binaries / "emulated_exec.so"
    subprocess.run([compiler, "-shared", "-fPIC", f'-DQEMU="{qemu}"', "-o", library, SOURCE, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def needed(program: str, package: str) -> str:
    """The path of a program; the test is skipped, naming the package, where there is none."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is missing: apt-get install -y {package}")
    return path
