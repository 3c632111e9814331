"""Pictures are opened side by side, whatever way this system starts processes in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from autotailor import data
from autotailor.data import workers
from autotailor.data.errors import DataError
from picture_files import photo

# As Snakemake's scripts do, it loads data at its top level, without `if __name__ == "__main__"`.
SCRIPT = """
import multiprocessing, sys
import torch
from autotailor import data

print("the script runs")
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
section = {"name": "mine", "kind": "folder", "root": sys.argv[2], "resolution": 16, "workers": 2}
splits = data.load(section)
first = next(iter(splits.train.batches(0, 2)))  # and no more
torch.save([list(splits.train.batches(0, 4)), list(splits.validation.batches(4))], sys.argv[3])
"""


def test_batches_are_prepared_a_few_ahead_and_no_further() -> None:
    opened: list[int] = []

    class Items(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
        def __len__(self) -> int:
            return 101

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            opened.append(index)
            return torch.full((1,), float(index)), index

    labels = torch.cat([labels for _, labels in workers.batches(Items(), 4, 3)])
    assert labels.tolist() == list(range(101))
    opened.clear()
    some = workers.batches(Items(), 4, 3)
    next(some)
    some.close()  # type: ignore[attr-defined]
    assert max(opened) < 4 * (workers.AHEAD * 3 + 2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pictures")]


@pytest.mark.skipif(workers._start_method() != "fork", reason="threads prepare the images here")
def test_signals_to_a_whole_job_do_not_end_the_processes_that_prepare_images() -> None:
    class Items:
        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return torch.full((1,), float(index)), os.getpid()

    loader = workers.TrainingLoader(Items(), 2)
    reading = loader.batches([[index] for index in range(40)])
    pids = {int(next(reading)[1]) for _ in range(2)}
    for name in ("TERM", "INT"):
        subprocess.run(["kill", f"-{name}", *map(str, pids)], check=True)
    assert {int(labels) for _, labels in reading} == pids
    for pid in pids:
        os.kill(pid, signal.SIGTERM)  # this process is the parent
    watched = list(loader._loader._iterator._workers)  # type: ignore[union-attr]
    for process in watched:
        process.join(10)
    assert [process.exitcode for process in watched] == [0, 0]


@pytest.mark.skipif(workers._start_method() != "fork", reason="threads prepare the images here")
def test_a_second_reader_hears_of_an_unreadable_picture_as_well() -> None:
    """While the first reader has batches left, processes of its own serve the second one."""

    class Items:
        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            if index == 5:
                raise DataError("item 5 is cut off")
            return torch.zeros(1), index

    loader = workers.TrainingLoader(Items(), 1)
    first = loader.batches([[0, 1], [2, 3]])
    next(first)
    with pytest.raises(DataError, match="item 5 is cut off"):
        list(loader.batches([[4, 5]]))
    assert len(list(first)) == 1


@pytest.mark.parametrize("workers_", [0, 2])
def test_a_picture_that_cannot_be_read_is_told_in_one_sentence(workers_: int) -> None:
    """A process that reads pictures would put its traceback in front of the message."""

    class Items(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            if index == 5:
                raise DataError("item 5 is cut off")
            return torch.full((1,), float(index)), index

    loader = workers.TrainingLoader(Items(), workers_)
    batches = loader.batches([[0, 1], [2, 3], [4, 5], [6, 7]])
    assert [next(batches)[1].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(DataError) as told:
        next(batches)
    assert str(told.value) == "item 5 is cut off"
    assert [labels.tolist() for _, labels in loader.batches([[6, 7], [3, 2]])] == [[6, 7], [3, 2]]


def test_threads_read_the_same_pictures_at_once_and_fork_no_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SubNets are evaluated side by side; a process forked by one of the threads died in a user's run."""
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        for i in range(30):
            photo(100 * number + i).save(tmp_path / name / f"{i}.png")
    section = {"name": "mine", "kind": "folder", "root": str(tmp_path), "resolution": 16}
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was forked to read pictures"))

    def read(part: str, workers: int) -> torch.Tensor:
        splits = data.load(section | {"workers": workers})
        batches = splits.train.batches(0, 8) if part == "train" else splits.validation.batches(2)
        return torch.cat([images for images, _ in batches])

    with ThreadPoolExecutor(4) as pool:
        train, validation, *others = pool.map(read, ["train", "validation"] * 2, [2, 2, 0, 0])
    assert torch.equal(train, others[0])
    assert torch.equal(validation, others[1])


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


@pytest.mark.skipif(workers._start_method() != "fork", reason="threads prepare the images here")
def test_processes_that_prepare_images_leave_no_temporary_folders(tmp_path: Path) -> None:
    program = """
import torch
from autotailor.data import workers

class Items:
    def __getitem__(self, index):
        return torch.zeros(1), index

print(sum(len(labels) for _, labels in workers.TrainingLoader(Items(), 2).batches([[i] for i in range(6)])))
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "6\n"
    assert not list(tmp_path.glob("pymp-*"))
