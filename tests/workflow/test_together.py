"""A rule that trains in two processes: a killed one is named, and the next run goes on; SIGTERM stops both alike."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
import pytest
import torch

ROOT = Path(__file__).parents[2]
OVERRIDES = ["data.train_images=128", "data.evaluation_images=20", "model.pretrain.epochs=6"]
SMALL = f"overrides=[{','.join([*OVERRIDES, 'model.pretrain.threads=1', 'model.pretrain.checkpoint_seconds=0'])}]"
TWO = SMALL.replace("]", ",processes=2]")
SNAKEMAKE = [str(Path(sys.executable).with_name("snakemake")), "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
SNAKEMAKE += ["--profile", str(ROOT / "profiles" / "default"), "--no-hooks", "results/resnet_digits/pretrained.pt"]
BY_HAND = [sys.executable, str(ROOT / "workflow" / "by_hand.py"), "pretrain", "--run"]
RESULTS = Path("results/resnet_digits")


def printed(folder: Path, said: Path) -> str:
    """What the console shows, and what the rules of a run print beside it."""
    beside = folder / ".snakemake" / "autotailor" / "output.txt"
    return said.read_text() + (beside.read_text() if beside.exists() else "")


def run(command: list[str], folder: Path, said: Path, end: Callable[[int], object] = bool, after: str = "") -> int:
    """Runs a command in a folder; ends something once the console shows a text; the exit status."""
    with said.open("wb") as console:
        process = subprocess.Popen(command, cwd=folder, stdout=console, stderr=console, start_new_session=True)
        try:
            deadline = time.monotonic() + 400
            while after and after not in printed(folder, said) and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            end(process.pid)
            return process.wait(timeout=400)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def kill_worker(rule: int) -> None:
    """Kills the second of the processes that train."""
    (worker,) = (child for child in psutil.Process(rule).children(recursive=True) if of_rank(child) == "1")
    worker.send_signal(signal.SIGKILL)


def of_rank(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("RANK")
    except psutil.Error:
        return None


@pytest.mark.sweep  # test_processes.py of the units kills in each run of the tests
def test_a_killed_process_is_named_and_the_next_run_goes_on(tmp_path: Path) -> None:
    command, first, second = [*SNAKEMAKE, "--config", TWO], tmp_path / "first.txt", tmp_path / "second.txt"
    assert run(command, tmp_path, first, kill_worker, after="epoch 1 of 6") == 1
    said = "Error in rule pretrain: pretrain: process 1 of 2 (from 0) was killed by SIGKILL"
    assert said in first.read_text()
    assert said in (tmp_path / "logs" / "resnet_digits" / "pretrain.log").read_text()
    assert not (tmp_path / RESULTS / "pretrained.pt").exists()
    assert run(command, tmp_path, second) == 0, second.read_text()
    assert "2 processes train together" in printed(tmp_path, second)
    assert "pretrain continues at epoch" in printed(tmp_path, second)
    assert printed(tmp_path, second).count("epoch 6 of 6") == 1  # the first process speaks for both
    history = pd.read_csv(tmp_path / RESULTS / "pretrain_history.csv")
    assert list(history["epoch"]) == list(range(6))


@pytest.mark.sweep  # test_processes.py of the units terminates in each run of the tests
def test_a_terminated_rule_stops_both_processes_at_one_step(tmp_path: Path) -> None:
    command, first = [*BY_HAND, "--config", TWO], tmp_path / "first.txt"
    status = run(command, tmp_path, first, lambda rule: os.kill(rule, signal.SIGTERM), after="epoch 1 of 6")
    assert status == 128 + signal.SIGTERM, first.read_text()
    assert first.read_text().count("pretrain was interrupted; the next run continues at this step") == 1
    (checkpoint,) = (tmp_path / "results" / ".work").rglob("pretrain.ckpt")
    assert 1 <= torch.load(checkpoint)["state"]["position"]["epoch"] < 6
