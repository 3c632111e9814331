"""Recipes scale what is trained and evaluated, and leave what the user names; the default one changes nothing."""

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
    found = composed("recipe=default")
    assert found["recipe"]["name"] == "default"
    assert with_recipe(found, ()) == found
    assert (found["finetune"]["epochs"], found["search"]["candidates"], found["sensitivity"]["images"]) == (24, 4, 0)


def test_a_demonstration_trains_and_evaluates_less_and_a_named_key_wins() -> None:
    usual, short = composed("recipe=default"), composed("finetune.epochs=30", "sensitivity.images=0")
    assert short["recipe"]["name"] == "demonstration"
    assert short["model"]["pretrain"] == usual["model"]["pretrain"]
    assert short["polish"]["joint"]["epochs"] == round(usual["polish"]["joint"]["epochs"] * 0.4)
    assert short["polish"]["rounds"] == [{"candidates": 2, "epochs": 1}, {"candidates": 1, "epochs": 8}]
    assert (short["search"]["candidates"], short["sensitivity"]["evaluations"]) == (2, 10)
    assert (short["finetune"]["epochs"], short["sensitivity"]["images"]) == (30, 0)
    assert composed()["sensitivity"]["images"] == 500
    assert [composed(f"recipe={name}")["finetune"]["epochs"] for name in ("quick", "thorough")] == [8, 48]
    config.check(short)


def test_a_recipe_limits_the_images_of_statistics_unless_they_are_named() -> None:
    def images(*overrides: str) -> list[int]:
        found = composed("recipe=quick", *overrides)
        return [found[section]["calibration"]["images"] for section in ("finetune", "polish")]

    assert images() == [256, 256]
    assert images("recipe.calibration=0") == [512, 512]
    assert images("finetune.calibration.images=64") == images("recipe.calibration=64") == [64, 64]
    assert images("recipe.calibration=1000") == [512, 512]


def test_a_demonstration_measures_less() -> None:
    names = ("default", "demonstration")
    usual, short = (config.compose(CONF, "resnet_digits", "host", [f"recipe={name}"]) for name in names)
    assert short["device"]["min_minutes"] == usual["device"]["min_minutes"] / 2
    assert (short["validate"]["subnets"], usual["validate"]["subnets"]) == (10, 20)
    for rule in ("validate", "confirm", "measure"):
        assert 1 <= short[rule]["rounds"] < usual[rule]["rounds"]


@pytest.mark.parametrize(("rounds", "wanted"), [(2, 2), (3, 2), (8, 4), (1, 1)])
def test_two_rounds_of_measuring_stay_two(rounds: int, wanted: int) -> None:
    found = composed("recipe=default")
    half = {**found, "recipe": {"measuring": 0.5}, "validate": {**found["validate"], "rounds": rounds}}
    assert with_recipe(half, ())["validate"]["rounds"] == wanted


def test_the_original_network_is_trained_as_its_file_says() -> None:
    found = [composed(f"recipe={name}")["model"]["pretrain"]["epochs"] for name in ("default", "quick", "thorough")]
    assert found == [10, 10, 10]


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


def test_stages_of_finetune_are_scaled_as_its_epochs_are() -> None:
    stages = "finetune.stages=[{data: digits, images: 1000}]"
    assert composed("recipe=quick", stages)["finetune"]["stages"][0]["images"] == 1000
    section = {"finetune": {"stages": [{"data": "x", "images": 1000}]}, "recipe": {"training": 0.5}}
    assert with_recipe(section, ())["finetune"]["stages"] == [{"data": "x", "images": 500}]
