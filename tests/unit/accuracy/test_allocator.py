"""Freed memory stays with the process where glibc is told so."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor.accuracy import allocator

SCRIPT = """
import importlib.util, sys
import psutil
spec = importlib.util.spec_from_file_location("allocator", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if sys.argv[2] == "keep":
    assert module.keep_freed_memory()
block = bytearray(b"1") * (64 << 20)
held = psutil.Process().memory_info().rss
del block
print((held - psutil.Process().memory_info().rss) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of another C library")
@pytest.mark.parametrize(("how", "returned"), [("keep", False), ("default", True)])
def test_what_is_freed_goes_back_to_the_system_or_not(how: str, returned: bool) -> None:
    command = [sys.executable, "-c", SCRIPT, str(Path(allocator.__file__)), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (int(done.stdout) >= 60) == returned
