from __future__ import annotations

from pathlib import Path

import pytest
import torch

from autotailor import config
from autotailor.compute.accelerator import AcceleratorError
from autotailor.config import ConfigError
from autotailor.sections import flatten

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
SCHEMAS = ROOT / "workflow" / "schemas"

MODELS = config.options(CONF, "model")
DEVICES = config.options(CONF, "device")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("device", DEVICES)
def test_every_model_and_device_composes_to_plain_values_of_the_schema(model: str, device: str) -> None:
    composed = config.compose(CONF, model, device)
    config.validate(composed, SCHEMAS / "conf.schema.yaml", "conf")
    assert composed["model"]["name"] == model
    assert composed["device"]["name"] == device
    assert type(composed["model"]["space"]) is dict


@pytest.mark.parametrize("group", ["data", "finetune", "search"])
def test_every_file_of_a_group_can_be_chosen(group: str) -> None:
    for name in config.options(CONF, group):
        composed = config.compose(CONF, "resnet_digits", "host", [f"{group}={name}"])
        assert composed[group]["name"] == name


@pytest.mark.parametrize("model", MODELS)
def test_only_the_embedded_networks_are_trained_at_a_high_rate_whatever_the_strategy(model: str) -> None:
    """A network that arrives trained forgets at the rates of the embedded ones."""
    rates = {"resnet_digits": 1.6e-2, "mobilenet_digits": 1.6e-2, "vit_digits": 4e-3}
    for overrides in ([], ["finetune=sandwich"], ["finetune=compofa"]):
        composed = config.compose(CONF, model, "host", overrides)
        assert composed["finetune"]["lr"] == rates.get(model, 2e-3)
    assert config.compose(CONF, model, "host", ["finetune.lr=0.5"])["finetune"]["lr"] == 0.5


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


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=f"unknown model 'resnet_digts'.*{', '.join(MODELS)}"):
        config.compose(CONF, "resnet_digts", "host")
    with pytest.raises(ConfigError, match=f"unknown device 'toaster'.*{', '.join(DEVICES)}"):
        config.compose(CONF, "resnet_digits", "toaster")


def test_a_value_of_the_wrong_type_is_named() -> None:
    composed = config.compose(CONF, "resnet_digits", "host", ["threads=many"])
    with pytest.raises(ConfigError, match=r"threads is 'many', but is not of type 'integer'"):
        config.validate(composed, SCHEMAS / "conf.schema.yaml", "conf")


def test_unknown_config_keys_list_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown key 'devise'. Did you mean 'device'\? Known: device, keep, lut, model, overrides"
    ):
        config.validate({"devise": "host"}, SCHEMAS / "config.schema.yaml", "--config")


def test_a_model_may_choose_its_own_data_and_an_override_still_wins(tmp_path: Path) -> None:
    for group, name, text in [
        ("data", "ours", "name: ours"),
        ("data", "theirs", "name: theirs"),
        ("device", "here", "name: here"),
        ("model", "mine", "defaults: [{override /data@_global_.data: theirs}]\nname: mine"),
        (".", "config", "defaults: [{data: ours}, {model: mine}, {device: here}, _self_]"),
    ]:
        path = tmp_path / group / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert config.compose(tmp_path, "mine", "here")["data"] == {"name": "theirs"}
    assert config.compose(tmp_path, "mine", "here", ["data=ours"])["data"] == {"name": "ours"}


def test_files_of_the_model_are_looked_for_before_any_work() -> None:
    with pytest.raises(ConfigError, match=r"model\.weights: no file .*nowhere\.pt; put it there"):
        config.check_files({"source": "timm:resnet18", "weights": "nowhere.pt"})
    with pytest.raises(ConfigError, match=r"model\.weights: no file .*epoch_9"):
        config.check_files({"source": "timm:resnet18", "weights": "runs/epoch_9"})
    config.check_files({"source": "timm:resnet18", "weights": None})


def test_a_checkpoint_to_go_on_from_is_looked_for_before_any_work() -> None:
    for key in ("model.pretrain", "finetune"):
        composed = config.compose(CONF, "resnet_digits", "host", [f"{key}.resume_from=nowhere.ckpt"])
        with pytest.raises(ConfigError, match=rf"{key}\.resume_from: no file .*nowhere\.ckpt"):
            config.check(composed)


def test_training_from_scratch_needs_a_network_in_pytorch_and_a_section(tmp_path: Path) -> None:
    (tmp_path / "mine.onnx").touch()
    with pytest.raises(ConfigError, match=r"set weights to null"):
        config.check_files({"source": str(tmp_path / "mine.onnx"), "weights": "pretrain", "pretrain": {"epochs": 1}})
    with pytest.raises(ConfigError, match=r"needs the section model\.pretrain"):
        config.check_files({"source": "timm:resnet18", "weights": "pretrain", "pretrain": None})
    config.check_files({"source": "timm:resnet18", "weights": "pretrain", "pretrain": {"epochs": 1}})


def test_a_configuration_is_checked_without_asking_the_device() -> None:
    from autotailor.ir.errors import AutoTailorError

    for device in config.options(CONF, "device"):
        config.check(config.compose(CONF, "resnet_digits", device))
    with pytest.raises(AutoTailorError, match=r"\[4711\] do not exist here"):
        config.check(config.compose(CONF, "resnet_digits", "host", ["device.cores=[4711]"]))


def test_a_named_accelerator_that_is_absent_is_found_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for override in ("accelerator=cuda", "model.pretrain.accelerator=cuda:1", "sensitivity.accelerator=cuda"):
        composed = config.compose(CONF, "resnet_digits", "host", [override])
        with pytest.raises(AcceleratorError, match="NVIDIA"):
            config.check_accelerators(composed)
    config.check_accelerators(config.compose(CONF, "resnet50", "host"))


def test_a_table_stands_for_a_device_that_is_away() -> None:
    from autotailor.ir.errors import AutoTailorError

    away = config.compose(CONF, "resnet_digits", "android", ["device.address=127.0.0.1:1"])
    config.check_device(away | {"profile": away["profile"] | {"lut": "theirs.csv"}})
    with pytest.raises(AutoTailorError, match="no ADB daemon answers"):
        config.check_device(away)


def test_flatten() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [2]}}, "e": None}) == {"a.b": 1, "a.c.d": [2], "e": None}


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("[seed=1,data.mean=[0.4,0.5,0.5]]", ["seed=1", "data.mean=[0.4,0.5,0.5]"]),
        ("[model.space.width={head: [0.8, 1.0], '*': [1.0]}, seed=2]",
         ["model.space.width={head: [0.8, 1.0], '*': [1.0]}", "seed=2"]),
        ("[]", []),
    ],
)  # fmt: skip
def test_a_text_that_yaml_took_for_one_word_is_a_list_of_overrides(text: str, overrides: list[str]) -> None:
    assert config.split_overrides(text) == overrides


@pytest.mark.parametrize("value", ["seed=1", ["seed=1"], 3, None])
def test_other_values_are_left_to_the_schema(value: object) -> None:
    assert config.split_overrides(value) == value
