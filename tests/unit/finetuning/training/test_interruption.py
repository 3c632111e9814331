"""Training that is killed or ended by a signal goes on where it was."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import team_work
import tiny_data
import together
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import (
    FinetuneConfig,
    PretrainConfig,
    PretrainResult,
)
from autotailor.finetuning.training.interruption import interruptible
from autotailor.project import repeats
from training import PRETRAIN, equal, fresh


def test_a_killed_process_goes_on_and_ends_in_the_same_bits(tmp_path: Path) -> None:
    folder, train = tmp_path / "killed", team_work.pretrained
    (killed,) = together.run(train, folder, 1, team_work.data((1, 1), rank=0), processes=1)
    assert killed.status == -signal.SIGKILL
    assert (folder / "pretrain.ckpt").exists()
    ((weights, history, _),) = together.results(train, folder, 1, processes=1)
    whole, expected, _ = train(tmp_path / "whole", 1)
    assert equal(weights, whole)
    assert history == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_training_keeps_the_step_at_work(
    tmp_path: Path,
    tiny: DataSplits,
    pretrained: PretrainResult,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """With checkpoints every hour, all that training keeps is what the signal made it keep."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with it ignored
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    draw, config = tiny_data.draw, replace(PRETRAIN, checkpoint_seconds=3600.0)

    def draw_and_end(count: int, *words: int) -> tuple[torch.Tensor, torch.Tensor]:
        if words == (0, 1):
            os.kill(os.getpid(), number)
        return draw(count, *words)

    monkeypatch.setattr(tiny_data, "draw", draw_and_end)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        finetuning.pretrain(fresh(), tiny, config, tmp_path)
    monkeypatch.undo()
    kept = torch.load(tmp_path / "pretrain.ckpt")["state"]["position"]
    assert (kept["epoch"], kept["batch"]) == (1, 1)
    again = finetuning.pretrain(fresh(), tiny, config, tmp_path)
    assert equal(again.state_dict, pretrained.state_dict)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_twice_at_once_counts_once_and_a_later_one_acts(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A signal to all processes of a run also reaches a training through Snakemake, and a checkpoint is written."""

    def end(number: int, frame: object) -> None:
        raise InterruptedError

    before = signal.signal(number, end)
    request.addfinalizer(lambda: signal.signal(number, before))
    with interruptible() as interruption:
        interruption.number = signal.SIGTERM  # of another process that trains together with this one
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert interruption.arrived() == number
        monkeypatch.setattr(repeats, "TOGETHER_S", 0.0)
        with pytest.raises(InterruptedError):
            signal.raise_signal(number)


def test_checkpoints_are_minutes_apart() -> None:
    assert PretrainConfig(epochs=1).checkpoint_seconds == FinetuneConfig(epochs=1).checkpoint_seconds == 300
