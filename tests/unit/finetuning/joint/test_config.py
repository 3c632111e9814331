"""Parameters of a joint training follow from those of ``finetune``."""

from pathlib import Path
from typing import Any

import pytest

from autotailor import config
from autotailor.finetuning import FinetuneConfig, TrainingError
from autotailor.finetuning.joint import JointConfig, before_race, continued
from autotailor.finetuning.polishing import PolishConfig

CONF = Path(__file__).parents[4] / "conf"


def sections(*overrides: str) -> tuple[dict[str, Any], dict[str, Any]]:
    composed = config.compose(CONF, "resnet_digits", "host", list(overrides))
    return composed["polish"], composed["finetune"]


def test_all_but_epochs_and_rate_are_those_of_finetune() -> None:
    """A SuperNet that goes on is not sorted again, and not begun from another training's position."""
    _, finetune = sections()
    found = continued({**finetune, "resume_from": "elsewhere.ckpt"}, 3, 2e-3)
    own = {"epochs": 3, "lr": 2e-3, "sort": False, "resume_from": None}
    assert found == finetune | own
    assert FinetuneConfig.from_section(found).epochs == 3


def test_the_training_before_a_race_computes_where_the_race_does() -> None:
    polish, finetune = sections("polish.accelerator=cuda", "polish.processes=2", "polish.nodes=3", "polish.workers=1")
    found = before_race(polish, finetune)
    assert found is not None
    assert [found[key] for key in ("accelerator", "processes", "nodes", "workers")] == ["cuda", 2, 3, 1]
    assert found["lr"] == polish["lr"] * polish["joint"]["lr_share"]
    assert found["epochs"] == polish["joint"]["epochs"] > 0


@pytest.mark.parametrize(
    ("of_race", "of_supernet", "expected"),
    [("sgd", "adamw_fused", "sgd"), ("adamw", "sgd", "adamw"), ("adamw", "adamw_fused", "adamw_fused")],
)
def test_the_rate_of_the_race_is_that_of_its_optimizer(of_race: str, of_supernet: str, expected: str) -> None:
    polish, finetune = sections(f"polish.optimizer={of_race}", f"finetune.optimizer={of_supernet}")
    found = before_race(polish, finetune)
    assert found is not None
    assert found["optimizer"] == expected


@pytest.mark.parametrize("overrides", [("polish.joint.epochs=0",), ("polish=none",)], ids=" ".join)
def test_there_is_none_without_epochs_or_without_a_race(overrides: tuple[str, ...]) -> None:
    assert before_race(*sections(*overrides)) is None


def test_a_section_of_ones_own_that_does_not_know_the_key_has_none() -> None:
    polish, finetune = sections()
    del polish["joint"]
    assert before_race(polish, finetune) is None


def test_a_section_of_ones_own_without_a_rate_has_that_of_every_training() -> None:
    polish, finetune = sections("polish.joint.lr_share=3")
    del polish["lr"]
    found = before_race(polish, finetune)
    assert found is not None
    assert found["lr"] == pytest.approx(3 * PolishConfig.from_section(polish).lr)


@pytest.mark.parametrize("values", [{"epochs": -1}, {"epochs": 1.5}, {"lr_share": 0.0}, {"lr_share": "half"}], ids=str)
def test_values_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=f"JointConfig.{next(iter(values))}: expected "):
        JointConfig(**values)
