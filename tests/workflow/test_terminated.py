"""A rule that trains and is ended by SIGTERM, as batch systems end a job, goes on at the same step."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
SMALL = "overrides=[data.train_images=256,data.evaluation_images=50,model.pretrain.epochs=6,model.pretrain.threads=1]"
COMMAND = [sys.executable, str(ROOT / "workflow" / "by_hand.py"), "pretrain", "--config", SMALL, "--run"]
WEIGHTS = Path("results/resnet_digits/pretrained.pt")


def pretrain(folder: Path, said: Path, end_after: str | None = None) -> int:
    """Runs the rule in a folder, and sends SIGTERM once its console shows a text; its exit status."""
    with said.open("wb") as console:
        rule = subprocess.Popen(COMMAND, cwd=folder, stdout=console, stderr=console)
        try:
            deadline = time.monotonic() + 240
            while end_after and end_after not in said.read_text() and rule.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            if end_after:
                os.kill(rule.pid, signal.SIGTERM)
            return rule.wait(timeout=240)
        finally:
            rule.kill()


def test_a_terminated_rule_saves_its_step_and_the_next_run_goes_on_there(tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    assert pretrain(tmp_path, first, end_after="epoch 2 of 6") == 128 + signal.SIGTERM
    assert "pretrain was interrupted; the next run continues at this step" in first.read_text()
    assert not (tmp_path / WEIGHTS).exists()
    (checkpoint,) = (tmp_path / "results" / ".work").rglob("pretrain.ckpt")
    position = torch.load(checkpoint)["state"]["position"]
    assert 2 <= position["epoch"] < 6
    assert pretrain(tmp_path, second) == 0, second.read_text()
    assert f"continues at epoch {position['epoch'] + 1}, step {position['batch'] + 1}" in second.read_text()
    assert (tmp_path / WEIGHTS).exists()
