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


def test_unknown_config_keys_list_the_known_ones() -> None:
    known = "cluster, device, keep, lut, model, overrides"
    with pytest.raises(ConfigError, match=rf"unknown key 'devise'. Did you mean 'device'\? Known: {known}"):
        config.validate({"devise": "host"}, SCHEMAS / "config.schema.yaml", "--config")
