"""Parameters of polishing: rounds are read, and refused where they contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from autotailor.finetuning import TrainingError
from autotailor.finetuning.polishing import PolishConfig, Round


def test_a_section_of_the_configuration_is_read() -> None:
    config = PolishConfig.from_section({"rounds": [{"candidates": 3, "epochs": 1}, {"candidates": 1, "epochs": 2}]})
    assert config.rounds == (Round(3, 1), Round(1, 2))
    assert config.of_round(1).epochs == 2


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"rounds": [{"candidates": 1, "epochs": 1}, {"candidates": 2, "epochs": 1}]}, "cannot train more than"),
        (
            {"rounds": [{"candidates": 0, "epochs": 1}]},
            r"polish\.rounds\.0\.candidates: expected an integer >= 1, not 0",
        ),
        ({"rounds": [{"candidates": 1}]}, r"polish\.rounds\.0: a round needs epochs, images or both"),
        ({"rates": [0]}, r"polish\.rates\.0: expected a number > 0, not 0"),
        ({"frozen": 1}, r"polish\.frozen: expected true or false, not 1"),
        ({"rounds": 3}, r"polish\.rounds: expected a list, not 3"),
        ({"epochs": 3}, "epochs of each round stand in polish.rounds"),
        ({"resume_from": "a.ckpt"}, "goes on from its own checkpoints only"),
        ({"workers": 0}, "workers"),
        ({"teacher": "timm:"}, r"polish\.teacher: unknown teacher 'timm:'; known are best, .*package\.module:factory"),
        ({"accept_chance": 1}, r"polish\.accept_chance: expected true or false, not 1"),
        ({"compile": "yes"}, r"polish\.compile: expected true or false, not 'yes'"),
        ({"teacher": None}, r"polish\.teacher: unknown teacher None; known are best, largest, original, timm:NAME"),
        ({"optimizer": "adam"}, r"polish\.optimizer: unknown optimizer 'adam'; known are adamw, "),
        ({"precision": "fp8"}, r"polish\.precision: unknown precision 'fp8'; known are auto, "),
        ({"lr": 0}, r"polish\.lr: expected a rate above 0 .*, not 0"),
        ({"warmup": 2}, r"polish\.warmup: expected a share of the steps from 0 to 1, not 2"),
        ({"label_smoothing": 1}, r"polish\.label_smoothing: expected a share from 0 to below 1, not 1"),
        ({"round": []}, "unknown keys"),
    ],
)
def test_contradictions_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        PolishConfig.from_section(section)


@pytest.mark.parametrize(
    ("round_", "available", "parts"),
    [
        (Round(1, 3), 810, (3, 810)),
        (Round(1, images=12_000), 810, (15, 810)),  # as many images as a large set gets
        (Round(1, images=12_000), 50_000, (8, 1_504)),  # of which a part is enough
        (Round(1, 1, 12_000), 50_000, (8, 6_272)),
    ],
)
def test_rounds_are_counted_in_images(round_: Round, available: int, parts: tuple[int, int]) -> None:
    assert round_.parts(available, checks=8, batch=32) == parts


def test_the_number_of_workers_and_the_name_are_not_part_of_a_trainings_identity() -> None:
    one, other = (PolishConfig(rounds=(Round(1, 2),), workers=n, name=name) for n, name in ((1, "a"), (4, "b")))
    assert one.of_round(0).identity == other.of_round(0).identity
    assert one.of_round(0).identity != PolishConfig(rounds=(Round(1, 2),), lr=0.1).of_round(0).identity
