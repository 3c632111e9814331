"""What ``snakemake --config`` takes."""

import pytest

from autotailor.config import CommandLine, ConfigError


@pytest.mark.parametrize("value", ["search", ["finetune,profile"], True])
def test_a_rule_that_cannot_be_kept_is_told_those_that_can(value: object) -> None:
    told = (
        r"pretrain, distil, finetune, sensitivity, validate_accuracy, profile, train_pool, polish, exits, compare"
        if value is not True
        else "a list"
    )
    with pytest.raises(ConfigError, match=rf"^--config: keep.* {told}"):
        CommandLine.from_section({"keep": value})
    assert CommandLine.from_section({"keep": "profile"}).keep == ("profile",)


def test_unknown_config_keys_list_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"^--config: unknown keys \['devise'\]; known are .*mean 'device'"):
        CommandLine.from_section({"devise": "host"})
    with pytest.raises(ConfigError, match=r"^--config: model: expected a list with at least one name, not \[\]"):
        CommandLine.from_section({"model": []})
