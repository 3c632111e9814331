"""The configuration of the search."""

from pathlib import Path

import pytest

from autotailor.search import (
    SearchConfig,
    SearchError,
)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"populaton": 3}, r"unknown keys \['populaton'\]; known are"),
        ({"population": 1}, "search.population: expected an integer >= 4, not 1"),
        ({"exact": "sometimes"}, "unknown exact 'sometimes'; known are auto, always, never"),
    ],
)
def test_a_wrong_configuration(section: dict[str, object], message: str) -> None:
    with pytest.raises(SearchError, match=message):
        SearchConfig.from_section(section)


def test_the_configuration_file_names_every_parameter() -> None:
    from omegaconf import OmegaConf

    path = Path(__file__).parents[3] / "conf" / "search" / "default.yaml"
    section = OmegaConf.to_container(OmegaConf.merge({"seed": 0}, OmegaConf.create({"search": OmegaConf.load(path)})))
    assert isinstance(section, dict)
    parameters = {**section["search"], "seed": 0}
    assert SearchConfig.from_section(parameters) == SearchConfig()
    assert set(parameters) == set(SearchConfig.__dataclass_fields__)
