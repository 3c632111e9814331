"""Recipes scale what is trained and evaluated, and leave what the user names; the default one changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotailor import config
from autotailor.config import ConfigError
from autotailor.config.recipe import with_recipe

CONF = Path(__file__).parents[3] / "conf"


def composed(*overrides: str) -> dict[str, Any]:
    return config.compose(CONF, "resnet_digits", "macs", overrides)


def test_the_default_recipe_changes_nothing() -> None:
    found = composed()
    assert found["recipe"]["name"] == "default"
    assert with_recipe(found, ()) == found
    assert (found["finetune"]["epochs"], found["search"]["candidates"], found["sensitivity"]["images"]) == (24, 4, 0)


def test_a_quick_recipe_trains_and_evaluates_less_and_a_named_key_wins() -> None:
    usual, quick = composed(), composed("recipe=quick", "finetune.epochs=30", "sensitivity.images=0")
    assert quick["model"]["pretrain"]["epochs"] == round(0.33 * usual["model"]["pretrain"]["epochs"])
    assert quick["polish"]["joint"]["epochs"] == round(0.33 * usual["polish"]["joint"]["epochs"])
    assert quick["polish"]["rounds"] == [{"candidates": 2, "epochs": 1}, {"candidates": 1, "epochs": 6}]
    assert (quick["search"]["candidates"], quick["sensitivity"]["evaluations"]) == (2, 10)
    assert (quick["finetune"]["epochs"], quick["sensitivity"]["images"]) == (30, 0)
    assert composed("recipe=quick")["sensitivity"]["images"] == 500
    assert composed("recipe=thorough")["finetune"]["epochs"] == 48
    config.check(quick)


def test_what_is_left_out_stays_left_out() -> None:
    assert composed("recipe=thorough", "polish=none")["polish"]["rounds"] == []
    assert composed("recipe=thorough", "finetune=none")["finetune"]["epochs"] == 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("recipe=quik", "unknown recipe 'quik'.*'quick'"),
        ("recipe.training=0", "recipe.training"),
        ("recipe.epochs=2", "epochs"),
    ],
)
def test_what_no_recipe_can_be_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composed(override)
