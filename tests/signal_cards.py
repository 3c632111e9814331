"""What the program of an exported SubNet's card prints for a signal."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np


def printed(folder: Path, archive: Path, row: int) -> str:
    """Runs the program for ONNX Runtime on a row of ``x`` of an ``.npz`` file, which it reads as ``signal.npy``."""
    programs = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    (folder / "prepare.py").write_text(next(each for each in programs if each.startswith("# prepare.py")))
    with np.load(archive) as arrays:
        np.save(folder / "signal.npy", arrays["x"][row])
    program = next(each for each in programs if "onnxruntime.InferenceSession" in each)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
