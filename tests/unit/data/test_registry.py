from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from autotailor import data
from autotailor.data.registry import register

CONF = Path(__file__).parents[3] / "conf" / "data"


def test_all_datasets_are_found() -> None:
    assert data.names() == ("digits", "folder", "torchvision")


def test_every_configured_dataset_is_known_and_its_parameters_are_accepted() -> None:
    assert {path.stem for path in CONF.glob("*.yaml")} >= {"digits", "cifar10", "imagenet"}
    for path in CONF.glob("*.yaml"):
        section = yaml.safe_load(path.read_text().replace("${seed}", "0").replace("${model.resolution}", "32"))
        refusal = _refusal(section | ({"download": False} if "download" in section else {}))
        assert not refusal or ("put" in refusal.lower() and "unknown" not in refusal)


def _refusal(section: dict[str, object]) -> str:
    try:
        data.check(section)
    except data.DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("section", [{}, {"name": 3}, "digits", {"name": "cats"}, {"name": "mine", "kind": "cats"}])
def test_unknown_datasets_are_refused_with_the_known_ones(section: object) -> None:
    for entrance in (data.check, data.load):
        with pytest.raises(data.DataError, match="digits, folder, torchvision"):
            entrance(section)  # type: ignore[operator]


def test_a_name_is_registered_once() -> None:
    data.names()
    with pytest.raises(data.DataError, match="twice"):
        register("digits")(lambda section: None)  # type: ignore[arg-type, return-value]


def test_the_fingerprint_says_what_the_data_were_made_from() -> None:
    prints = {data.load({"name": "digits", "seed": s, "evaluation_images": 1}).fingerprint for s in (0, 0, 1)}
    assert len(prints) == 2


def test_resize_is_antialiased_and_leaves_equal_sizes_alone() -> None:
    stripes = torch.zeros(1, 3, 32, 32)
    stripes[..., ::2] = 1.0
    assert data.resize(stripes, 32) is stripes
    small = data.resize(stripes, 8)
    assert small.shape == (1, 3, 8, 8)
    assert (small - 0.5).abs().max() < 0.1
    with pytest.raises(data.DataError, match="at least 1"):
        data.resize(stripes, 0)
