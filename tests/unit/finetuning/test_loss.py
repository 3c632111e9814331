"""A loss of the user's: what it is given, and what is refused before training."""

import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import autotailor
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.finetuning import FinetuneConfig, FinetuneResult, TrainingError
from autotailor.finetuning.lesson import lesson_of
from autotailor.finetuning.loss import make_loss
from autotailor.task import find
from autotailor.task.distillation import distillation_loss
from training import equal, weights


def same(logits: torch.Tensor, labels: torch.Tensor, teacher: torch.Tensor, config: FinetuneConfig) -> torch.Tensor:
    """Distillation as autotailor has it."""
    return distillation_loss(logits, labels, teacher, lesson_of(config, independent=False))


@pytest.fixture(autouse=True)
def _functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's with losses."""
    mine = types.ModuleType("losses_of_mine")
    vars(mine).update(
        same=same,
        labels_alone=lambda logits, labels, teacher, config: functional.cross_entropy(logits, labels),
        by_image=lambda logits, labels, teacher, config: functional.cross_entropy(logits, labels, reduction="none"),
        number=lambda logits, labels, teacher, config: 1.0,
        constant=lambda logits, labels, teacher, config: teacher.sum(),
        infinite=lambda logits, labels, teacher, config: logits.sum() * float("inf"),
        two=lambda logits, labels: logits.sum(),
    )
    monkeypatch.setitem(sys.modules, "losses_of_mine", mine)


@pytest.mark.parametrize(("name", "is_the_same"), [("same", True), ("labels_alone", False)])
def test_it_takes_the_place_of_distillation(
    name: str,
    is_the_same: bool,
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    finetuned: FinetuneResult,
    tmp_path: Path,
) -> None:
    config = replace(finetune_config, loss=f"losses_of_mine:{name}")
    result = finetuning.finetune(plain_net, tiny, config, tmp_path)
    assert equal(weights(result.net), weights(finetuned.net)) is is_the_same


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("losses_of_mine:by_image", r"returned a tensor of shape \[4\]"),
        ("losses_of_mine:number", "returned float"),
        ("losses_of_mine:constant", r"returned a tensor of shape \[\]"),
        ("losses_of_mine:infinite", "expected a finite number"),
        ("losses_of_mine:two", "failed on 4 images: TypeError"),
        ("losses_of_mine:absent", "name a function of the module"),
        ("modules_of_nobody:one", "module modules_of_nobody cannot be imported"),
    ],
)
def test_what_is_no_loss_is_refused_before_training(source: str, says: str, refused: Callable[..., None]) -> None:
    refused(says, loss=source)


def for_whole_labels(
    logits: torch.Tensor, labels: torch.Tensor, teacher: torch.Tensor, config: FinetuneConfig
) -> torch.Tensor:
    """The example of docs/extending/loss.md, which is wrong for the shares of classes that mixtures have."""
    trusted = (teacher.argmax(dim=1) == labels).float()
    return (functional.cross_entropy(logits, labels, reduction="none") * trusted).sum() / trusted.sum().clamp(min=1)


@pytest.mark.parametrize("classes", [3, 4, 5])
def test_a_loss_that_cannot_take_mixed_labels_is_refused_for_any_number_of_classes(classes: int) -> None:
    """With as many images as classes, shapes fit that would not fit in the training."""
    setattr(sys.modules["losses_of_mine"], "for_whole_labels", for_whole_labels)  # noqa: B010
    config = FinetuneConfig(epochs=1, loss="losses_of_mine:for_whole_labels")
    make_loss(config, find("classification"), classes, independent=False)
    mixed = replace(config, augmentation=AugmentationConfig(mixup=0.2))
    with pytest.raises(TrainingError, match=r"losses_of_mine:for_whole_labels failed on \d images: RuntimeError"):
        make_loss(mixed, find("classification"), classes, independent=False)


def test_the_current_folder_is_searched_for_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loss_in_the_current_folder.py").write_text(
        "def mine(logits, labels, teacher, config):\n    return logits.square().mean()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    loss = make_loss(
        FinetuneConfig(epochs=1, loss="loss_in_the_current_folder:mine"),
        find("classification"),
        classes=3,
        independent=False,
    )
    logits = torch.full((2, 3), 2.0)
    assert float(loss(logits, torch.tensor([0, 1]), logits, FinetuneConfig(epochs=1))) == 4.0


@pytest.mark.parametrize("key", ["loss", "teacher"])
def test_a_name_has_a_colon(key: str) -> None:
    with pytest.raises(TrainingError, match=rf"finetune\.{key}: unknown {key} 'mine'; known are .*package\.module:f"):
        FinetuneConfig.from_section({"epochs": 1, key: "mine"})
