from pathlib import Path

import pytest

from autotailor import config
from autotailor.config import ConfigError

CONF = Path(__file__).parents[3] / "conf"


def test_an_override_changes_one_value_and_what_refers_to_it() -> None:
    base = config.compose(CONF, "resnet_digits", "host")
    changed = config.compose(CONF, "resnet_digits", "host", ["finetune.epochs=1"])
    assert changed["finetune"].pop("epochs") == 1
    del base["finetune"]["epochs"]
    assert changed == base
    assert config.compose(CONF, "resnet_digits", "host", ["seed=7"])["finetune"]["seed"] == 7


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("finetune.epoch=1", r"Did you mean 'finetune.epochs'\? Known: .*finetune.calibration"),
        ("finetun.epochs=1", "unknown key 'finetun.epochs'.*Known: .*finetune"),
        ("finetune.epochs.deep=1", "unknown key"),
        ("+finetune.new=1", "changed, not added"),
        ("~finetune.epochs", "changed, not added"),
        ("data=digit", "unknown data 'digit'. Did you mean 'digits'"),
        ("finetune.epochs", "expected key=value"),
        ("model=resnet_digits", "--config model="),
    ],
)
def test_an_override_of_something_unknown_lists_what_exists(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.compose(CONF, "resnet_digits", "host", [override])


def test_an_override_that_does_not_fit_is_told_why_and_where_to_write_it() -> None:
    told = r"blocks': Key 'InvertedResidul' is not in struct.* into the file itself"
    with pytest.raises(ConfigError, match=told):
        config.compose(CONF, "resnet50", "macs", ["model.space.blocks={InvertedResidul:{expand_ratio:[1.0]}}"])


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("[seed=1,data.mean=[0.4,0.5,0.5]]", ["seed=1", "data.mean=[0.4,0.5,0.5]"]),
        ("[model.space.width={head: [0.8, 1.0], '*': [1.0]}, seed=2]",
         ["model.space.width={head: [0.8, 1.0], '*': [1.0]}", "seed=2"]),
        ("a.b=1,c={d: [2, 3]}", ["a.b=1", "c={d: [2, 3]}"]),
        ("[]", []),
    ],
)  # fmt: skip
def test_a_text_that_yaml_took_for_one_word_is_a_list_of_overrides(text: str, overrides: list[str]) -> None:
    assert config.split_overrides(text) == overrides


@pytest.mark.parametrize("value", [["seed=1"], 3, None])
def test_other_values_are_left_to_the_schema(value: object) -> None:
    assert config.split_overrides(value) == value
