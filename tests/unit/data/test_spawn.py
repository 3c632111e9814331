"""Workers that start afresh: macOS's and Windows' ``spawn``, Python 3.14's ``forkserver``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from autotailor import data
from picture_files import photo

# As Snakemake's scripts do, it loads data at its top level, without `if __name__ == "__main__"`.
SCRIPT = """
import multiprocessing, sys
import torch
from autotailor import data

print("the script runs")
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
section = {"name": "mine", "kind": "folder", "root": sys.argv[2], "resolution": 16, "workers": 1}
splits = data.load(section)
torch.save([list(splits.train.batches(0, 4)), list(splits.validation.batches(4))], sys.argv[3])
"""


@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=pytest.mark.sweep)])
def test_pictures_are_the_same_in_processes_that_start_afresh(method: str, tmp_path: Path) -> None:
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            photo(100 * number + i).save(tmp_path / "photos" / name / f"{i}.png")
    script, result = tmp_path / "script.py", tmp_path / "batches.pt"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), method, str(tmp_path / "photos"), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the script runs") == 1
    here = data.load({"name": "mine", "kind": "folder", "root": str(tmp_path / "photos"), "resolution": 16})
    expected = [list(here.train.batches(0, 4)), list(here.validation.batches(4))]
    for batches, same in zip(torch.load(result), expected, strict=True):
        assert len(batches) == len(same) > 0
        for (images, labels), (its_images, its_labels) in zip(batches, same, strict=True):
            assert torch.equal(images, its_images)
            assert torch.equal(labels, its_labels)
