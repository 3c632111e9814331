from __future__ import annotations

from pathlib import Path

import pytest

from autotailor import config
from autotailor.config import ConfigError

ROOT = Path(__file__).parents[3]
CONF = ROOT / "conf"
SCHEMAS = ROOT / "workflow" / "schemas"


def test_a_value_of_the_wrong_type_is_named() -> None:
    composed = config.compose(CONF, "resnet_digits", "host", ["threads=many"])
    with pytest.raises(ConfigError, match=r"threads is 'many', but is not of type 'integer'"):
        config.validate(composed, SCHEMAS / "conf.schema.yaml", "conf")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("50%", r"budgets is '50%', but .* a whole number or a list; .* in a list as well: \[\"50%\"\]$"),
        (3.5, r"budgets is 3\.5, but has to be a whole number or a list; .*: \[3\.5\]$"),
        (True, r"budgets is True, but has to be a whole number or a list$"),
    ],
)
def test_a_value_that_is_none_of_several_types_is_told_them(value: object, told: str) -> None:
    composed = config.compose(CONF, "resnet_digits", "host", [])
    composed["export"]["budgets"] = value
    with pytest.raises(ConfigError, match=told):
        config.validate(composed, SCHEMAS / "conf.schema.yaml", "conf")


def test_unknown_config_keys_list_the_known_ones() -> None:
    known = "cluster, device, keep, lut, model, overrides"
    with pytest.raises(ConfigError, match=rf"unknown key 'devise'. Did you mean 'device'\? Known: {known}"):
        config.validate({"devise": "host"}, SCHEMAS / "config.schema.yaml", "--config")
