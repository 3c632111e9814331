"""Losses that explode: what the error names, and how the training goes on."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import autotailor
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, TrainingError
from autotailor.finetuning.training.divergence import ENOUGH, Guard, usual_loss
from autotailor.finetuning.training.steps import Step
from training import PRETRAIN, equal, fresh


class Described:
    """A step function with something to say."""

    def __call__(self, step: Step) -> float:
        return 0.0

    def describe(self) -> str:
        return "it trained this and that"


def guard(spike: float = 0.0) -> Guard:
    return Guard(replace(PRETRAIN, spike=spike), Described(), "a training")


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_an_error_that_names_step_and_remedy(loss: float, tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as refused:
        guard().check(loss, None, (1, 4), tmp_path / "a.ckpt")
    said = str(refused.value)
    assert f"became {loss} in epoch 2, step 5 (it trained this and that)" in said
    assert "lower lr" in said
    assert f"resume_from: {tmp_path / 'a.ckpt'}" in said


def test_a_suspicious_loss_is_a_warning_once_in_each_epoch(caplog: pytest.LogCaptureFixture) -> None:
    watching = guard()
    for epoch, batch, loss in ((0, 20, 4.9), (0, 21, 5.1), (0, 22, 9.0), (1, 3, 6.0)):
        watching.check(loss, 1.0, (epoch, batch), None)
    assert [re.findall(r"epoch \d, step \d+", line) for line in caplog.messages] == [
        ["epoch 1, step 22"],
        ["epoch 2, step 4"],
    ]
    assert "it trained this and that" in caplog.text


def test_a_spike_is_an_error_where_the_configuration_says_so() -> None:
    guard(spike=3.0).check(2.9, 1.0, (0, 20), None)
    with pytest.raises(TrainingError, match=r"jumped from 1 to 3\.1 in epoch 1, step 21"):
        guard(spike=3.0).check(3.1, 1.0, (0, 20), None)
    with pytest.raises(TrainingError, match="ratio above 1"):
        replace(PRETRAIN, spike=0.5)


def test_the_first_losses_of_an_epoch_are_compared_with_the_epoch_before() -> None:
    assert usual_loss(3.0, ENOUGH - 1, None) is None
    assert usual_loss(3.0, ENOUGH - 1, 7.0) == 7.0
    assert usual_loss(2.0 * ENOUGH, ENOUGH, 7.0) == 2.0


def test_a_supernets_error_names_the_subnets_of_the_step_with_their_losses(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(finetune_config, strategy="sandwich", optimizer="sgd", lr=1e30, warmup=0.0)
    with pytest.raises(TrainingError) as refused:
        finetuning.finetune(plain_net, tiny, config, tmp_path)
    said = str(refused.value)
    largest, smallest = plain_net.largest(), plain_net.smallest()
    assert len(re.findall(r"SubNet [0-9a-f]{12} \([^)]+\) with loss (?:nan|inf|[\d.e+]+)", said)) == 3
    assert f"SubNet {largest.id} (the largest)" in said
    assert all(f"{change.variable}={change.choice:g}" in said for change in smallest.modifications)


def test_a_training_goes_on_from_the_checkpoint_before_with_a_smaller_learning_rate(
    tiny: DataSplits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate explodes in the second epoch; checkpoints of every step hold weights of that rate, too."""
    from autotailor.finetuning.training import loop

    rate = loop.learning_rate
    monkeypatch.setattr(loop, "learning_rate", lambda c, step, all_: 1e30 if step == 4 else rate(c, step, all_))
    with pytest.raises(TrainingError) as refused:
        finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, optimizer="sgd", lr=0.01), tmp_path / "one")
    monkeypatch.undo()
    (named,) = re.findall(r"resume_from: (\S+)", str(refused.value))
    state = torch.load(named)["state"]
    assert (state["position"]["epoch"], state["position"]["batch"]) == (1, 1)
    assert all(value.isfinite().all() for value in state["module"].values())
    going = replace(PRETRAIN, optimizer="sgd", lr=0.001, resume_from=named)
    result = finetuning.pretrain(fresh(), tiny, going, tmp_path / "two")
    assert result.history[0] == state["position"]["history"][0]
    assert len(result.history) == 3
    assert result.metrics["loss"] < 10
    again = finetuning.pretrain(fresh(), tiny, going, tmp_path / "three")
    assert equal(result.state_dict, again.state_dict)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "there is no checkpoint"), (b"text", "is no checkpoint"), ({"state": {}}, "cannot go on")],
    ids=["missing", "damaged", "other"],
)
def test_what_training_cannot_go_on_from_is_refused(
    content: object, says: str, tiny: DataSplits, tmp_path: Path
) -> None:
    path = tmp_path / "other.ckpt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(TrainingError, match=says):
        finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, resume_from=str(path)), tmp_path / "work")


def test_a_warning_of_a_real_training_names_the_subnets(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("autotailor.finetuning.training.divergence.SUSPICIOUS", 1e-3)
    with caplog.at_level(logging.WARNING):
        finetuning.finetune(plain_net, tiny, finetune_config, tmp_path)
    assert [line.count("SubNet ") for line in caplog.messages if "jumped" in line] == [finetune_config.subnets]
