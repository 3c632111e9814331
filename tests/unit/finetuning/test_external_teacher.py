"""Another network as teacher: how it is loaded and normalised, what is refused, and that it teaches."""

import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import timm
import torch
from torch import nn

import autotailor
import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.data.splits import sized
from autotailor.finetuning import FinetuneConfig, FinetuneResult, TrainingError
from autotailor.finetuning.external_teacher import fetch_teacher, load_teacher
from autotailor.task import find
from oracles import Oracle
from training import equal, weights


class Several(Oracle):
    """A network with auxiliary answers."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits = super().forward(images)
        return logits, logits  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def _factories(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's with teachers."""
    mine = types.ModuleType("teachers_of_mine")
    vars(mine).update(
        oracle=Oracle,
        sharp=lambda: Oracle(8.0),
        silent=lambda: Oracle(0.0),
        many=lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 7)),
        broken=lambda: 1 / 0,
        several=Several,
        words=lambda: "a network",
    )
    monkeypatch.setitem(sys.modules, "teachers_of_mine", mine)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("teachers_of_mine:many", r"finetune\.teacher teachers_of_mine:many: .*expected \[2, 5\]"),
        ("teachers_of_mine:words", r"it made a str"),
        ("teachers_of_mine:broken", r"failed with ZeroDivisionError: .*, at test_external_teacher\.py:\d+"),
        ("teachers_of_mine:several", r"returns a tuple; expected one tensor of logits \[n, 5\]"),
        ("teachers_of_mine:absent", "absent"),
        ("modules_of_nobody:one", "cannot be imported"),
        ("timm:resnet_of_nobody", "timm has no model"),
    ],
)
def test_a_teacher_that_cannot_be_used_is_refused_by_name(source: str, says: str, refused: Callable[..., None]) -> None:
    refused(says, teacher=source)


def test_a_teacher_no_better_than_chance_is_told_by_name(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = replace(finetune_config, epochs=0, teacher="teachers_of_mine:silent")  # accept_chance: a warning
    finetuning.finetune(plain_net, tiny, config, tmp_path)
    assert "finetune.teacher teachers_of_mine:silent is right for 20.0%" in caplog.text


def test_a_network_of_timm_gets_images_in_its_own_resolution_mean_and_std(tiny: DataSplits) -> None:
    """The mean over an image is the logit, and the pixels of the data are theirs times 2 plus 1."""

    class Mean(nn.Module):
        pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "input_size": (3, 48, 48)}

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            assert images.shape[-1] == 48
            return images.mean(dim=(1, 2, 3))[:, None].repeat(1, 5)

    sys.modules["teachers_of_mine"].mean = Mean  # type: ignore[attr-defined]
    teacher = load_teacher("teachers_of_mine:mean", replace(tiny, mean=(1.0, 1.0, 1.0), std=(2.0, 2.0, 2.0)))
    normalised = torch.full((2, 3, 32, 32), -0.25)  # pixels of 0.5
    assert teacher.resolution == 48
    assert torch.allclose(teacher.network(sized(normalised, teacher.resolution)), torch.zeros(2, 5), atol=1e-6)
    assert torch.allclose(
        teacher.network(sized(normalised + 0.5, teacher.resolution)), torch.full((2, 5), 4.0), atol=1e-5
    )


def test_a_network_of_timm_that_was_made_for_the_datas_size_gets_images_of_this_size(tiny: DataSplits) -> None:
    """What timm says of the network's images is that of its weights on the hub."""

    def small() -> nn.Module:
        return timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=5)

    sys.modules["teachers_of_mine"].small = small  # type: ignore[attr-defined]
    assert load_teacher("teachers_of_mine:small", tiny).resolution == 0
    fetch_teacher("teachers_of_mine:small", find("classification"), 5, 32)
    with pytest.raises(TrainingError, match=r"AssertionError: Input height \(224\) doesn't match model \(32\)"):
        fetch_teacher("teachers_of_mine:small", find("classification"), 5, 64)


def test_it_teaches_in_the_place_of_the_original_network_and_goes_on_bit_by_bit(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    finetuned: FinetuneResult,
    tmp_path: Path,
) -> None:
    told = replace(finetune_config, teacher="teachers_of_mine:oracle", checkpoint_seconds=0.0)
    whole = finetuning.finetune(plain_net, tiny, told, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(plain_net, tiny_data.splits(fail_at=(1, 1)), told, tmp_path / "killed")
    resumed = finetuning.finetune(plain_net, tiny, told, tmp_path / "killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert not equal(weights(whole.net), weights(finetuned.net))
    original = "original_validation_accuracy"
    assert whole.metrics[original] == finetuned.metrics[original]


def test_a_teacher_with_other_weights_is_another_training(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = replace(finetune_config, teacher="teachers_of_mine:oracle", epochs=1)
    finetuning.finetune(plain_net, tiny, told, tmp_path)
    finetuning.finetune(plain_net, tiny_data.splits(fail_at=(0, 2)), told, tmp_path)  # nothing is trained again
    monkeypatch.setattr(sys.modules["teachers_of_mine"], "oracle", lambda: Oracle(8.0))
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(plain_net, tiny_data.splits(fail_at=(0, 2)), told, tmp_path)
