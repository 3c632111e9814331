"""A folder of the user's, with autotailor's own behind it."""

import re
from pathlib import Path

import pytest

from autotailor import config
from autotailor.config import ConfigError
from autotailor.config.names import search_path
from autotailor.project.places import CONF


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a model, and with a file that autotailor has as well."""
    for name, text in (
        ("model/mine", "defaults: [vit_digits, _self_]\nname: mine"),
        ("search/default", "defaults: [/search/theirs@_here_, _self_]\ngenerations: 7"),
        ("search/theirs", (CONF / "search" / "default.yaml").read_text()),
    ):
        path = tmp_path / "conf" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "conf"


def test_a_file_of_the_users_takes_the_place_of_autotailors(own: Path) -> None:
    assert config.compose(own, "resnet_digits", "host")["search"]["generations"] == 7
    assert config.compose(CONF, "resnet_digits", "host")["search"]["generations"] == 100


def test_a_model_of_the_users_may_begin_with_one_of_autotailors(own: Path) -> None:
    composed = config.compose(own, "mine", "host", ["data=digits"])
    expected = config.compose(CONF, "vit_digits", "host")
    assert composed["model"] == expected["model"] | {"name": "mine"}
    assert "mine" not in config.options(CONF, "model")
    assert set(config.options(own, "model")) == {*config.options(CONF, "model"), "mine"}
    assert config.groups(own) == config.groups(CONF)


def test_autotailors_own_folder_is_searched_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(CONF)
    assert search_path(CONF) == [CONF]
    assert search_path(tmp_path / "link") == [tmp_path / "link"]
    assert config.compose(tmp_path / "link", "resnet_digits", "host") == config.compose(CONF, "resnet_digits", "host")


def test_an_unknown_name_tells_both_folders(own: Path) -> None:
    with pytest.raises(ConfigError, match=f"unknown model 'mien'. Did you mean 'mine'.*{own / 'model'} and of {CONF}"):
        config.compose(own, "mien", "host")


def test_the_folder_is_the_named_one_or_that_of_the_current_folder_or_autotailors(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert config.conf_folder().resolve() == own
    monkeypatch.chdir(own)
    assert config.conf_folder() == CONF
    assert config.conf_folder(own) == own
    with pytest.raises(ConfigError, match="--conf nowhere: no such folder; leave it out"):
        config.conf_folder(Path("nowhere"))


@pytest.mark.parametrize("name", ["gerät", "o'neil", "x(1)", "pixel{6}", "5", "1e3", "null", "x,y"])
def test_a_file_whose_name_hydra_does_not_take_is_refused_with_the_remedy(own: Path, name: str) -> None:
    (own / "device").mkdir(exist_ok=True)
    (own / "device" / f"{name}.yaml").write_text("defaults: [host, _self_]\n")
    with pytest.raises(
        ConfigError, match=re.escape(f"device {name!r}: Hydra") + r".*rename .*\.yaml to letters from a"
    ):
        config.compose(own, "resnet_digits", name)


@pytest.mark.parametrize("name", ["my phone", "pixel.7", "a+b", "5a", "2024-01-01", "phone:1"])
def test_other_names_of_files_are_taken(own: Path, name: str) -> None:
    (own / "device").mkdir(exist_ok=True)
    (own / "device" / f"{name}.yaml").write_text("defaults: [host, _self_]\nthreads: 1\n")
    assert config.compose(own, "resnet_digits", name)["device"]["threads"] == 1
