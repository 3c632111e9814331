"""A check and a fingerprint are made at every parse of the Snakefile: they import neither PyTorch nor torchvision."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from picture_files import encoded, photo


@pytest.mark.parametrize("kind", ["folder", "torchvision", "digits"])
def test_a_fingerprint_imports_no_torch(kind: str, tmp_path: Path) -> None:
    section = {"name": "digits"} if kind == "digits" else {"name": "m", "kind": kind, "root": str(tmp_path)}
    if kind != "digits":
        section |= {"resolution": 16} | ({"dataset": "CIFAR10"} if kind == "torchvision" else {})
        for name in ("cat", "dog"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "0.png").write_bytes(encoded(photo(), "PNG"))
    code = f"import sys; from autotailor import data; print(data.fingerprint({section!r})); "
    code += "assert not {'torch', 'torchvision', 'sklearn', 'timm'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip()) == 64
