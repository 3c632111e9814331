"""Losses that explode: what the error names, and how the training goes on."""

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import autotailor
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, TrainingError
from autotailor.finetuning.config import DistillationConfig, PanelConfig
from autotailor.finetuning.training.divergence import ENOUGH, WINDOW, Guard
from autotailor.finetuning.training.steps import Step
from training import PRETRAIN, equal, fresh


class Described:
    """A step function with something to say."""

    def __call__(self, step: Step) -> float:
        return 0.0

    def describe(self) -> str:
        return "it trained this and that"


class Several(Described):
    """A step function whose steps are of the kind that the test sets."""

    now = "a"

    def kind(self) -> str:
        return self.now


def guard(spike: float = 0.0, step: Described | None = None, losses: tuple[float, ...] = (1.0,) * ENOUGH) -> Guard:
    """A guard that has seen some losses."""
    made = Guard(replace(PRETRAIN, spike=spike), step or Described(), "a training")
    for number, loss in enumerate(losses):
        made.check(loss, (0, number), None)
    return made


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_an_error_that_names_step_and_remedy(loss: float, tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as refused:
        guard().check(loss, (1, 4), tmp_path / "a.ckpt")
    said = str(refused.value)
    assert f"became {loss} in epoch 2, step 5 (it trained this and that)" in said
    assert "lower lr" in said
    assert f"resume_from: {tmp_path / 'a.ckpt'}" in said


def test_activations_that_float16_cannot_hold_are_told_the_remedy(tiny: DataSplits, tmp_path: Path) -> None:
    class Loud(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = fresh()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return nn.functional.linear(1e3 * self.inner(images), 1e3 * torch.eye(5)) / 1e6

    config = replace(PRETRAIN, epochs=1)
    finetuning.pretrain(Loud(), tiny, config, tmp_path / "fp32")
    with pytest.raises(TrainingError, match=r"the loss became nan in epoch 1, step 1; lower lr .* precision to fp32"):
        finetuning.pretrain(Loud(), tiny, replace(config, precision="fp16"), tmp_path / "fp16")


def test_a_suspicious_loss_is_a_warning_once_in_each_epoch(caplog: pytest.LogCaptureFixture) -> None:
    watching = guard(losses=(1.0,) * WINDOW)
    for epoch, batch, loss in ((0, 20, 4.9), (0, 21, 5.1), (0, 22, 9.0), (1, 3, 6.0)):
        watching.check(loss, (epoch, batch), None)
    assert [re.findall(r"epoch \d, step \d+", line) for line in caplog.messages] == [
        ["epoch 1, step 22"],
        ["epoch 2, step 4"],
    ]
    assert "it trained this and that" in caplog.text


def test_a_spike_is_an_error_where_the_configuration_says_so() -> None:
    guard(spike=3.0).check(2.9, (0, 20), None)
    with pytest.raises(TrainingError, match=r"jumped from 1 to 3\.1 in epoch 1, step 21"):
        guard(spike=3.0).check(3.1, (0, 20), None)
    with pytest.raises(TrainingError, match="ratio above 1"):
        replace(PRETRAIN, spike=0.5)


def test_too_few_losses_are_no_measure(caplog: pytest.LogCaptureFixture) -> None:
    guard(losses=(1.0,) * (ENOUGH - 1)).check(1e6, (0, ENOUGH), None)
    assert not caplog.messages
    guard(losses=(1.0,) * ENOUGH).check(1e6, (0, ENOUGH), None)
    assert len(caplog.messages) == 1


def test_losses_are_compared_with_those_of_their_kind(caplog: pytest.LogCaptureFixture) -> None:
    """Steps of the kind a have the loss 0.01, those of the kind b the loss 1."""
    step = Several()
    watching = guard(step=step, losses=())
    for number in range(2 * ENOUGH):
        step.now = "ab"[number % 2]
        watching.check({"a": 0.01, "b": 1.0}[step.now], (0, number), None)
    step.now = "b"
    watching.check(4.9, (1, 0), None)
    assert not caplog.messages
    step.now = "a"
    watching.check(0.2, (2, 0), None)
    assert "the loss jumped from 0.01 to 0.2 in epoch 3, step 1 (it trained this and that)" in caplog.text
    step.now = "b"
    watching.check(5.1, (3, 0), None)
    assert "the loss jumped from 1 to 5.1 in epoch 4" in caplog.text


def test_a_kind_that_is_seen_seldom_is_compared_with_the_highest_loss_of_all_kinds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    step = Several()
    watching = guard(step=step, losses=(0.8, *(0.01,) * ENOUGH))
    step.now = "b"
    watching.check(3.9, (1, 0), None)
    assert not caplog.messages
    watching.check(3.9 * 5.1, (2, 0), None)
    assert "the loss jumped from 3.9 to" in caplog.text


def test_what_a_tenth_of_the_steps_exceed_is_usual_and_what_fewer_exceed_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of 64 losses, 7 are a tenth; what came before the last 64 does not count."""
    for high, warns in ((7, False), (6, True)):
        caplog.clear()
        watching = guard(losses=(*(4.9,) * WINDOW, *(4.5,) * high, *(1.0,) * (WINDOW - high)))
        watching.check(6.0, (1, 0), None)
        assert bool(caplog.messages) == warns


def test_subnets_that_differ_are_no_jump_and_a_rate_that_explodes_is_one(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The largest SubNet learns 48 images by heart; in epoch 30 others still have twenty times its loss."""
    from autotailor.finetuning.training import loop

    config = replace(
        finetune_config,
        epochs=32,
        lr=0.01,
        strategy="mixed",
        subnets=1,
        label_smoothing=0.0,
        distillation=DistillationConfig(weight=0.0),
        panel=PanelConfig(every=0),
    )
    with caplog.at_level(logging.WARNING):
        finetuning.finetune(plain_net, tiny, config, tmp_path / "sound")
    assert "jumped" not in caplog.text
    rate = loop.learning_rate
    monkeypatch.setattr(loop, "learning_rate", lambda c, step, all_: 3.0 if step == 80 else rate(c, step, all_))
    with caplog.at_level(logging.WARNING):
        finetuning.finetune(plain_net, tiny, config, tmp_path / "exploding")
    jumps = [line for line in caplog.messages if "jumped" in line]
    assert jumps
    named = r"in epoch 2[78], step \d \(it trained SubNet [0-9a-f]{12} \([^)]+\) with loss [\d.e+]+\)"
    assert re.search(named, jumps[0])


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


def test_a_training_that_has_all_epochs_leaves_nothing_to_go_on_with(tiny: DataSplits, tmp_path: Path) -> None:
    finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, epochs=1), tmp_path)
    going = replace(PRETRAIN, epochs=1, lr=1e-3, resume_from=str(tmp_path / "pretrain.ckpt"))
    with pytest.raises(TrainingError, match="it has 1 epochs, so that none is left; raise epochs"):
        finetuning.pretrain(fresh(), tiny, going, tmp_path / "work")
    assert len(finetuning.pretrain(fresh(), tiny, replace(going, epochs=2), tmp_path / "work").history) == 2


def test_a_warning_of_a_real_training_names_the_subnets(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("autotailor.finetuning.training.divergence.SUSPICIOUS", 1e-3)
    monkeypatch.setattr("autotailor.finetuning.training.divergence.ENOUGH", 4)
    with caplog.at_level(logging.WARNING):
        finetuning.finetune(plain_net, tiny, finetune_config, tmp_path)
    assert [line.count("SubNet ") for line in caplog.messages if "jumped" in line] == [finetune_config.subnets]
