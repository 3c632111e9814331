from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from autotailor.accuracy import AccuracyError, CalibrationConfig
from autotailor.compute import accelerator
from autotailor.compute.accelerator import AcceleratorError
from autotailor.config import compose
from autotailor.data import DataError
from autotailor.finetuning import (
    DistillationConfig,
    FinetuneConfig,
    PretrainConfig,
    ScaledConfig,
    TrainingError,
    sampling,
)
from autotailor.finetuning.polishing import PolishConfig, Round
from autotailor.finetuning.training.config import WITHOUT_EFFECT

CONF = Path(__file__).parents[3] / "conf"


def read(path: Path) -> dict[str, object]:
    text = path.read_text().replace("defaults:\n  - common/training@_here_\n  - _self_\n", "")
    for name, value in (
        ("seed", "0"),
        ("threads", "1"),
        ("workers", "1"),
        ("processes", "1"),
        ("nodes", "1"),
        ("precision", "auto"),
        ("accelerator", "auto"),
    ):
        text = text.replace(f"${{{name}}}", value)
    return yaml.safe_load(text)


def test_every_configured_strategy_exists_and_every_strategy_is_configured() -> None:
    chosen = [path.stem for path in (CONF / "finetune").glob("*.yaml")]
    sections = [compose(CONF, "resnet_digits", "host", [f"finetune={name}"])["finetune"] for name in chosen]
    configs = [FinetuneConfig.from_section(section) for section in sections]
    assert {config.strategy for config in configs} == set(sampling.names())


@pytest.mark.parametrize("name", ["resnet_digits", "mobilenet_digits"])
def test_the_models_pretraining_is_accepted(name: str) -> None:
    section = read(CONF / "model" / f"{name}.yaml")["pretrain"]
    assert PretrainConfig.from_section(section).epochs > 0  # type: ignore[arg-type]


def test_every_training_of_every_model_takes_over_what_stands_at_the_top() -> None:
    asked = {"seed": 5, "precision": "fp16", "accelerator": "cuda:3", "processes": 2, "nodes": 3}
    for path in sorted((CONF / "model").glob("*.yaml")):
        found = compose(CONF, path.stem, "host", [f"{key}={value}" for key, value in asked.items()])
        for section in (found["model"]["pretrain"], found["finetune"], found["polish"]):
            if section is not None:
                assert {key: section.get(key) for key in asked} == asked, path.stem


def test_nested_sections_become_nested_parameters() -> None:
    config = FinetuneConfig.from_section({"epochs": 1, "calibration": {"images": 7}, "distillation": {"weight": 1}})
    assert config.calibration == CalibrationConfig(images=7)
    assert config.distillation == DistillationConfig(weight=1)


def test_identity_leaves_out_what_has_no_influence() -> None:
    assert PretrainConfig(epochs=1).identity == PretrainConfig(epochs=1, checkpoint_seconds=99).identity
    assert PretrainConfig(epochs=1).identity != PretrainConfig(epochs=1, lr=1e-3).identity
    assert FinetuneConfig(epochs=1, workers=2).identity == FinetuneConfig(epochs=1).identity
    mixed = FinetuneConfig(epochs=1, strategy="mixed")
    assert mixed.identity == replace(mixed, sampling={"smallest": 0.2, "largest": 0.25}).identity
    assert mixed.identity != replace(mixed, sampling={"smallest": 0.3}).identity
    assert FinetuneConfig(epochs=1, precision="bf16").identity != FinetuneConfig(epochs=1).identity


def test_identity_is_the_text_that_earlier_versions_wrote_into_checkpoints() -> None:
    section = {"epochs": 10, "lr": 1, "precision": "bf16", "weight_decay": 0, "augmentation": {"mixup": 1}, "seed": 0}
    assert PretrainConfig.from_section(section).identity == (
        "PretrainConfig(augmentation=AugmentationConfig(mixup=1), checkpoint_seconds=0.0, epochs=10, lr=1, "
        "precision='bf16', weight_decay=0)"
    )


def test_identity_names_the_kind_of_an_accelerator_but_not_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = FinetuneConfig(epochs=1).identity
    assert FinetuneConfig(epochs=1, accelerator="cpu").identity == expected
    devices = {"auto": "cpu", "cuda:0": "cuda:0", "cuda:1": "cuda:1"}
    monkeypatch.setattr(accelerator, "resolve", lambda name: torch.device(devices[name]))
    assert FinetuneConfig(epochs=1, accelerator="auto").identity == expected
    on_gpu = FinetuneConfig(epochs=1, accelerator="cuda:0").identity
    assert on_gpu == FinetuneConfig(epochs=1, accelerator="cuda:1").identity != expected
    assert "'cuda'" in on_gpu


def test_identity_names_a_micro_batch_that_divides_the_batch() -> None:
    configs = {size: PretrainConfig(epochs=1, batch_size=16, micro_batch=size).identity for size in (0, 8, 16, 32)}
    assert configs[0] == configs[16] == configs[32] != configs[8]


def test_identity_names_the_number_of_all_processes() -> None:
    alone = PretrainConfig(epochs=1, batch_size=16)
    assert replace(alone, sync_batch_norm=False).identity == alone.identity
    four = replace(alone, processes=4)
    assert four.identity == replace(alone, processes=2, nodes=2).identity != alone.identity
    assert replace(four, sync_batch_norm=False).identity != four.identity
    assert replace(four, micro_batch=4).identity == four.identity != replace(four, micro_batch=2).identity


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epochs": -1}, "epochs"),
        ({"epochs": 1.5}, "epochs"),
        ({"epochs": True}, "epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"lr": 0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"lr": "fast"}, "lr"),
        ({"threads": 0}, "threads"),
        ({"optimizer": "lion"}, "adamw, adamw_fused, lamb, muon, rmsprop, sgd"),
        ({"ema": 1.0}, "below 1"),
        ({"layer_decay": 1.5}, "layer_decay"),
        ({"precision": "fp8"}, "auto, fp32, bf16, fp16"),
        ({"accelerator": "gpu"}, "auto, cpu, cuda"),
        ({"micro_batch": -1}, "micro_batch"),
        ({"processes": 0}, "processes"),
        ({"nodes": 1.5}, "nodes"),
        ({"sync_batch_norm": "yes"}, "expected true or false"),
        ({"processes": 3, "batch_size": 64}, "choose a multiple of 3"),
        ({"processes": 2, "nodes": 2, "batch_size": 6}, "divided equally among 4 processes"),
        ({"processes": 2, "batch_size": 6, "augmentation": {"mixup": 0.2}}, "choose a multiple of 4"),
        ({"processes": 2, "accelerator": "cuda:1"}, "write cuda, cpu or auto"),
        ({"subnets": 0}, "subnets"),
        ({"calibration": {"images": 0}}, "images"),
        ({"augmentation": {"policy": "augmix"}}, "none, randaugment, trivialaugment"),
        ({"augmentation": {"mix": 0.2}}, "unknown keys"),
        ({"calibration": {"pictures": 5}}, "pictures"),
        ({"distillation": {"weight": 2}}, "weight"),
        ({"distillation": {"temperature": 0}}, "temperature"),
        ({"epoch": 3}, "unknown keys"),
        ({"strategy": "hamburger"}, "known are alternating"),
        ({"strategy": "sandwich", "subnets": 2}, r"finetune\.subnets: 2 .* for the strategy sandwich.*at least 3"),
        ({"strategy": "alternating", "subnets": 1}, "at least 2"),
        ({"strategy": "mixed", "sampling": {"middle": 1}}, "middle"),
        ({"strategy": "mixed", "sampling": {"largest": 0.6, "smallest": 0.6}}, "at most 1"),
        ({"strategy": "mixed", "sampling": {"largest": -0.1}}, "largest"),
        ({"strategy": "mixed", "sampling": {"between": "flops"}}, "distance, macs"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused_by_name(change: dict[str, object], says: str) -> None:
    with pytest.raises((TrainingError, AccuracyError, AcceleratorError, DataError), match=says):
        FinetuneConfig.from_section({"epochs": 1, **change})


def test_epochs_are_required_and_a_section_is_a_mapping() -> None:
    with pytest.raises(TrainingError, match="missing keys"):
        PretrainConfig.from_section({})
    with pytest.raises(TrainingError, match="mapping"):
        PretrainConfig.from_section("fast")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", [{}, {"images": 9, "lrs": []}, {"images": 9, "lrs": [1e-3, 1e-3]}, {"images": -1}], ids=str
)
def test_scaled_training_needs_images_and_a_grid(bad: dict[str, object]) -> None:
    with pytest.raises(TrainingError, match=r"images|lrs"):
        ScaledConfig.from_section(bad)


def test_a_parameter_that_is_new_and_changes_nothing_leaves_the_identity() -> None:
    class Later(PretrainConfig, kw_only=True):
        new: float = 0.0

    later = {value: Later(epochs=3, lr=1e-3, new=value).identity.replace("Later", "PretrainConfig") for value in (0, 1)}
    assert later[0] == PretrainConfig(epochs=3, lr=1e-3).identity != later[1]
    assert FinetuneConfig(epochs=1).identity != FinetuneConfig(epochs=1, distillation=DistillationConfig(0.1)).identity


@pytest.mark.parametrize(
    "config", [FinetuneConfig(epochs=2), PolishConfig(rounds=(Round(1, 2),)), PretrainConfig(epochs=2)]
)
def test_parameters_without_effect_are_in_no_identity(config: FinetuneConfig | PolishConfig | PretrainConfig) -> None:
    """A work folder's name leaves them out; a checkpoint in it must not depend on them either."""
    values = {"workers": 5, "checkpoint_seconds": 7.0, "spike": 11.0, "accept_chance": True}
    assert values.keys() == WITHOUT_EFFECT
    changed = replace(config, **{key: value for key, value in values.items() if hasattr(config, key)})
    assert changed != config
    one, other = (each.of_round(0) if isinstance(each, PolishConfig) else each for each in (config, changed))
    assert one.identity == other.identity
