"""A trained network keeps its accuracy while it learns to share its weights; what is said where it does not."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch.nn import functional

import autotailor
from autotailor import config, data, finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, FinetuneResult
from autotailor.finetuning.forgetting import EarlyWarning, warn_if_worse
from autotailor.ir.supernet import SuperNet
from autotailor.task.scores import ACCURACY, AGREEMENT

CONF = Path(__file__).parents[3] / "conf"
SIDE = 32
AFTER, EARLY = "it forgot while it learned to share its weights", "the training has forgotten much"


@pytest.fixture(scope="module")
def splits() -> DataSplits:
    """Digits that a network learns in seconds."""
    easier = {"noise": [0.0, 0.1], "clutter": 0.05, "rotation": 10.0, "shear": 0.1}
    return data.load({"name": "digits", "resolution": SIDE, "train_images": 1024, "evaluation_images": 360, **easier})


@pytest.fixture(scope="module")
def trained(splits: DataSplits) -> SuperNet:
    """A network of timm, trained by its owner, in the space that is proposed for it."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network, epochs = timm.create_model("test_resnet", num_classes=10).train(), 8
    optimizer = torch.optim.AdamW(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, epochs * splits.train.num_batches(64))
    for epoch in range(epochs):
        for images, labels in splits.train.batches(epoch, 64):
            optimizer.zero_grad()
            functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
            schedule.step()
    return autotailor.compile(network.eval(), None, name="mine", resolution=SIDE)


def shared(net: SuperNet, splits: DataSplits, workdir: Path, **changes: Any) -> FinetuneResult:
    """48 steps with the parameters of a model that brings none of its own."""
    plain = ["finetune=mixed", "precision=fp32", "accelerator=cpu", "workers=1"]
    section = config.compose(CONF, "resnet50", "host", plain)["finetune"]
    quick = {"epochs": 3, "panel": {"every": 4, "images": 180, "subnets": 1}, "calibration": {"images": 128}}
    parameters = FinetuneConfig.from_section({**section, **quick, **changes})
    return finetuning.finetune(net, splits, parameters, workdir)


def lost(result: FinetuneResult) -> float:
    """Points of accuracy that the largest SubNet lies below the original network."""
    return result.metrics["original_validation_accuracy"] - result.metrics["largest_validation_accuracy"]


def test_a_trained_network_keeps_its_accuracy_at_the_rate_of_a_model_that_names_none(
    trained: SuperNet, splits: DataSplits, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = shared(trained, splits, tmp_path)
    assert result.metrics["original_validation_accuracy"] > 80
    assert lost(result) < 15
    assert EARLY not in caplog.text


def test_at_the_rate_of_the_embedded_networks_it_is_forgotten_which_both_warnings_say(
    trained: SuperNet, splits: DataSplits, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lr = config.compose(CONF, "resnet_digits", "host")["finetune"]["lr"]
    result = shared(trained, splits, tmp_path, lr=lr, optimizer="adamw_fused")  # by which more is forgotten
    assert lost(result) > 25
    early, after = [record.getMessage() for record in caplog.records if "lower finetune.lr" in record.getMessage()]
    assert EARLY in early
    assert "after epoch 1 " in early
    assert AFTER in after
    assert early.endswith("lower finetune.lr (now 0.016, for instance to 0.004)")


@pytest.mark.parametrize(
    ("images", "wrong", "warns"),
    [(1000, 50, True), (1000, 15, False), (20, 1, False)],
    ids=["clearly worse", "by less than two points", "within the error of few images"],
)
def test_only_a_clear_loss_is_complained_about(
    images: int, wrong: int, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    known, now = np.ones(images, dtype=np.bool_), np.arange(images) >= wrong
    warn_if_worse(known, now, np.arange(images), 1e-3, ACCURACY)
    assert (AFTER in caplog.text) == warns


def test_without_labels_the_warnings_speak_of_agreement(caplog: pytest.LogCaptureFixture) -> None:
    known = np.ones(1000, dtype=np.bool_)
    warn_if_worse(known, np.arange(1000) >= 500, np.arange(1000), 1e-3, AGREEMENT)
    EarlyWarning(lambda metrics, epoch: None, known, 1 / 4, 1e-3, AGREEMENT)({"largest_accuracy": 25.0}, 0)
    assert "the largest SubNet agrees with the original network for 50.0 % of the validation images: " in caplog.text
    assert "the largest SubNet agrees with the original network for 25.0 % of the panel's images: " in caplog.text
    assert "is right" not in caplog.text


def test_a_rate_far_too_high_is_not_answered_with_one_that_is_still_too_high(caplog: pytest.LogCaptureFixture) -> None:
    warn_if_worse(np.ones(1000, dtype=np.bool_), np.zeros(1000, dtype=np.bool_), np.arange(1000), 1000.0, ACCURACY)
    assert "lower finetune.lr (now 1000, for instance to 0.004)" in caplog.text


def test_a_better_network_is_not_complained_about(caplog: pytest.LogCaptureFixture) -> None:
    warn_if_worse(np.arange(1000) >= 500, np.ones(1000, dtype=np.bool_), np.arange(1000), 1e-3, ACCURACY)
    assert not caplog.text


def test_the_early_warning_comes_once_below_half_of_the_accuracy_above_chance_and_passes_all_rows_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows: list[tuple[int, dict[str, float]]] = []
    known = np.arange(100) >= 10  # 90 %; chance is 50 %, so that 70 % is the limit
    record = EarlyWarning(lambda metrics, epoch: rows.append((epoch, dict(metrics))), known, 1 / 2, 8e-3, ACCURACY)
    told = [
        {"loss": 1.0, "largest_accuracy": 71.0},
        {"loss": 0.9},
        *({"largest_accuracy": now} for now in (69.0, 60.0)),
    ]
    for epoch, metrics in enumerate(told):
        record(metrics, epoch)
    assert rows == list(enumerate(told))
    (said,) = [entry.getMessage() for entry in caplog.records if entry.levelno == logging.WARNING]
    assert "after epoch 3 the largest SubNet has accuracy 69.0 %" in said
    assert "for instance to 0.002" in said
