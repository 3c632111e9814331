"""PyTorch networks that cannot be exported."""

from __future__ import annotations

import subprocess
import sys

NETWORK = """
import torch
import autotailor
try:
    autotailor.compile(torch.nn.Linear(3, 3))
except autotailor.AutoTailorError as error:
    print(error)
"""


def test_a_network_that_takes_no_image_is_told_in_one_line_and_without_pytorchs_log() -> None:
    done = subprocess.run([sys.executable, "-c", NETWORK], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert "Linear cannot be exported from an image of shape [1, 3, 224, 224]: addmm: mat1 and mat2" in done.stdout
    assert done.stderr == ""
