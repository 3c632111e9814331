"""Weights that arrive are not trained jointly, those of the workflow are as ever, and what the user names wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotailor import config

CONF = Path(__file__).parents[3] / "conf"
TRAINED_HERE = {"resnet_digits": ("mixed", "default"), "vit_digits": ("transformer", "transformer")}
PLENTY = {"trained_digits": ("none", "default")}


def files(model: str, *overrides: str) -> tuple[str, str]:
    found = config.compose(CONF, model, "macs", overrides)
    return found["finetune"]["name"], found["polish"]["name"]


def test_only_weights_that_arrive_are_polished_alone() -> None:
    assert {model: files(model) for model in (*TRAINED_HERE, *PLENTY)} == TRAINED_HERE | PLENTY
    assert files("resnet50") == ("none", "given")
    assert files("resnet_digits", "model.weights=mine.pt") == ("none", "given")
    assert files("resnet50", "model.weights=pretrain") == ("mixed", "default")


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        (["finetune=mixed"], ("mixed", "given")),
        (["polish=short"], ("none", "short")),
        (["finetune=sandwich", "polish=default"], ("sandwich", "default")),
    ],
)
def test_a_file_that_the_user_names_wins(overrides: list[str], found: tuple[str, str]) -> None:
    assert files("resnet50", *overrides) == found


def test_a_key_that_the_user_names_wins() -> None:
    found = config.compose(CONF, "resnet50", "macs", ["finetune.epochs=3", "polish.lr=1e-4"])
    assert (found["finetune"]["epochs"], found["finetune"]["strategy"]) == (3, "mixed")
    assert (found["polish"]["lr"], found["polish"]["rates"]) == (1e-4, [])
    assert config.compose(CONF, "resnet50", "macs")["polish"]["rates"]
