"""The teacher and the loss that a configuration names are tried before the first rule, with nothing fetched."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from autotailor import config
from autotailor.finetuning import TrainingError

CONF = Path(__file__).parents[3] / "conf"
CLASSES, SIDE = 10, 32  # of the digits


@pytest.fixture(autouse=True)
def _module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's."""
    mine = types.ModuleType("code_of_mine")

    def network(classes: int) -> nn.Module:
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, classes))

    vars(mine).update(
        good=lambda: network(CLASSES),
        small=lambda: network(5),
        large=lambda: nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, CLASSES)),
        broken=lambda: [][0],
        mean=lambda logits, labels, teacher, config: logits.mean(),
        rows=lambda logits, labels, teacher, config: logits.mean(1),
    )
    monkeypatch.setitem(sys.modules, "code_of_mine", mine)


def composed(of: str = "finetune", **section: Any) -> dict[str, Any]:
    """The embedded example, whose original network is trained first, with values of a section."""
    return config.compose(CONF, "resnet_digits", "macs", [f"{of}.{key}={value}" for key, value in section.items()])


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"teacher": "timm:resnet_of_nobody"}, "finetune.teacher timm:resnet_of_nobody: timm has no model"),
        ({"teacher": "timm:resnet18"}, "its own weights have 1000 classes, and the data have 10; name a teacher"),
        ({"teacher": "modules_of_nobody:one"}, "module modules_of_nobody cannot be imported"),
        ({"teacher": "code_of_mine:absent"}, "finetune.teacher code_of_mine:absent: .*name a function of the module"),
        ({"teacher": "code_of_mine:broken"}, r"failed with IndexError: .*, at test_named_code\.py:\d+"),
        ({"teacher": "code_of_mine:small"}, r"code_of_mine:small: Sequential gives \[2, 5\] for 2 images"),
        ({"loss": "modules.of.nobody:one"}, "module modules.of.nobody cannot be imported"),
        ({"loss": "code_of_mine:rows"}, r"code_of_mine:rows returned a tensor of shape \[\d\]"),
    ],
    ids=str,
)
def test_what_training_could_not_use_is_refused_before_any_work(section: dict[str, str], says: str) -> None:
    with pytest.raises(TrainingError, match=says):
        config.check(composed(**section))


@pytest.mark.parametrize(
    ("teacher", "says"),
    [
        ("timm:resnet_of_nobody", "polish.teacher timm:resnet_of_nobody: timm has no model"),
        ("timm:resnet18", "polish.teacher timm:resnet18: its own weights have 1000 classes, and the data have 10"),
        ("code_of_mine:broken", r"polish.teacher code_of_mine:broken: .*failed with IndexError"),
        ("code_of_mine:small", r"polish.teacher code_of_mine:small: Sequential gives \[2, 5\] for 2 images"),
        ("code_of_mine:large", r"polish.teacher code_of_mine:large: Sequential cannot read images \[n, 3, 32, 32\]"),
    ],
)
def test_what_polishing_could_not_use_is_refused_before_any_work(teacher: str, says: str) -> None:
    with pytest.raises(TrainingError, match=says):
        config.check(composed("polish", teacher=teacher))
    config.check(composed("polish", teacher=teacher) | {"polish": composed("polish", rounds=[])["polish"]})


@pytest.mark.parametrize(
    ("of", "rule"),
    [
        ("finetune", "finetune"),
        ("finetune", "train_pool"),
        ("finetune", "compare"),
        ("finetune", "polish"),
        ("polish", "polish"),
    ],
)
def test_weights_that_cannot_be_fetched_are_refused_where_their_rule_will_run(
    of: str, rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    thousand = composed(of, teacher="timm:resnet18")
    thousand |= {"model": thousand["model"] | {"num_classes": 1000}}
    config.check_named_code(thousand)
    config.fetch_teachers(thousand, {"pretrain", "compile", "finetune"} - {of})
    if of == "finetune":
        alone = thousand["polish"] | {"joint": {"epochs": 0, "lr_share": 2.0}}
        config.fetch_teachers(thousand | {"polish": alone}, {"polish"})
    config.fetch_teachers(composed(of, teacher="code_of_mine:good"), {rule})
    with pytest.raises(
        TrainingError,
        match=rf"{of}\.teacher timm:resnet18: the pretrained weights of timm's resnet18 could not be fetched .*HF_HOME",
    ):
        config.fetch_teachers(thousand, {rule})


def test_what_training_can_use_is_accepted_and_no_network_of_timm_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timm.create_model", lambda *_, **__: pytest.fail("a network of timm was made"))
    config.check(composed(teacher="largest"))
    config.check(composed(teacher="code_of_mine:good", loss="code_of_mine:mean"))
    config.check(composed("polish", teacher="code_of_mine:good"))
    thousand = composed(teacher="timm:resnet18")
    config.check_named_code(thousand | {"model": thousand["model"] | {"num_classes": 1000}})


def test_a_teacher_is_tried_with_images_as_large_as_those_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.view(-1, 3 * SIDE * SIDE)[:, :CLASSES] - 1

    monkeypatch.setattr(sys.modules["code_of_mine"], "fixed", Fixed, raising=False)
    config.check(composed(teacher="code_of_mine:fixed", loss="code_of_mine:mean"))
