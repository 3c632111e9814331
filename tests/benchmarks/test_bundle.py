"""What benchmarks/gpu/bundle.sh packs for a machine that has PyTorch and no internet."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "benchmarks" / "gpu" / "bundle.sh").read_text(encoding="utf-8")
PACKED = set(re.search(r"names=\(([^)]*)\)", SCRIPT)[1].split())  # type: ignore[index]
WITH_PYTORCH = {
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "numpy", "pillow", "setuptools", "sympy"),
    *("torch", "torchvision", "triton", "typing-extensions"),
}
IMPORTED = "import json, sys, autotailor.commands.doctor.accelerator.command; print(json.dumps(sorted(sys.modules)))"


def test_the_lock_has_a_version_of_everything_that_is_packed() -> None:
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    assert locked >= PACKED


def test_what_the_examination_imports_is_packed_or_comes_with_pytorch() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    tops = {name.partition(".")[0] for name in json.loads(done.stdout)}
    owners = importlib.metadata.packages_distributions()
    found = {owner.lower().replace("_", "-") for top in tops for owner in owners.get(top, ())}
    lacking = found - PACKED - WITH_PYTORCH - {"autotailor"}
    assert not [name for name in lacking if not name.startswith(("cuda-", "nvidia-"))]
