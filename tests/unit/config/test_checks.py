import copy
import sys
import types
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from autotailor import config
from autotailor.compute.accelerator import AcceleratorError
from autotailor.compute.compilation import CompilationError
from autotailor.config import ConfigError
from autotailor.config.checks import check_augmentation
from autotailor.finetuning import TrainingError
from autotailor.ir.errors import AutoTailorError
from autotailor.profiling import LUT
from picture_files import encoded, photo

CONF = Path(__file__).parents[3] / "conf"

SENSELESS = (-1, "x", "", None, [], {}, float("nan"), True, 1e12, [1, 2, 3], [["a"]], {"a": 1})
"""Values of all kinds; most parameters can have none of them."""

CLASSES, SIDE = 10, 32  # of the digits


def keys_of(section: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all keys of nested sections."""
    for key, value in section.items():
        yield (*above, key)
        if isinstance(value, Mapping):
            yield from keys_of(value, (*above, key))


def changed(composed: Mapping[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """A configuration with another value of one key."""
    result = section = copy.deepcopy(dict(composed))
    for key in path[:-1]:
        section = section[key]
    section[path[-1]] = value
    return result


def refusal(composed: Mapping[str, Any]) -> str:
    """What a user is told about a configuration before any work; empty where nothing is wrong."""
    try:
        config.validate(composed)
        config.check(composed)
    except AutoTailorError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("data", ["digits", "folder"])
def test_every_refusal_names_the_key_as_the_user_wrote_it(data: str, tmp_path: Path) -> None:
    for name in ("train/cat", "train/dog", "val/cat", "val/dog"):
        (tmp_path / name).mkdir(parents=True)
        for number in range(2):
            (tmp_path / name / f"{number}.png").write_bytes(encoded(photo(seed=number + 2 * len(name)), "PNG"))
    given = {"digits": [], "folder": [f"data.root={tmp_path}", "model.num_classes=2"]}[data]
    composed = config.compose(CONF, "resnet_digits", "host", [f"data={data}", *given])
    composed.pop("cluster")
    assert refusal(composed) == ""
    refused = set()
    for path in keys_of(composed):
        for value in SENSELESS:
            told = refusal(changed(composed, path, value))
            assert not told or ".".join(path) in told, (path, value)
            refused |= {path} if told else set()
    assert {("finetune", "lr"), ("model", "pretrain", "lr"), ("polish", "augmentation", "policy")} <= refused
    assert {("finetune", "panel", "images"), ("data", "fractions"), ("device", "fusion"), ("search", "seed")} <= refused


def test_files_of_the_model_are_looked_for_before_any_work() -> None:
    with pytest.raises(ConfigError, match=r"model\.weights: no file .*nowhere\.pt; put it there"):
        config.check_files({"source": "timm:resnet18", "weights": "nowhere.pt"})
    with pytest.raises(ConfigError, match=r"model\.weights: no file .*epoch_9"):
        config.check_files({"source": "timm:resnet18", "weights": "runs/epoch_9"})
    config.check_files({"source": "timm:resnet18", "weights": None})


def test_exits_of_what_is_no_classifier_are_refused_before_any_work() -> None:
    composed = config.compose(CONF, "resnet_digits", "host")
    composed = changed(composed, ("model", "space", "exits"), {"after": ["stage1"]})
    with pytest.raises(ConfigError, match=r"model\.space\.exits: .* data\.task is segmentation; leave exits out"):
        config.check(changed(composed, ("data", "task"), "segmentation"))


def test_a_frozen_network_without_alternatives_is_refused_before_any_work() -> None:
    composed = changed(config.compose(CONF, "resnet_digits", "host"), ("finetune", "freeze"), "original")
    with pytest.raises(ConfigError, match=r"finetune\.freeze: .* model\.space\.alternatives asks for none"):
        config.check(composed)


def test_exits_that_save_nothing_of_what_budgets_limit_are_refused() -> None:
    for device in ("macs", "parameters"):
        composed = config.compose(CONF, "resnet_digits", device)
        composed = changed(composed, ("model", "space", "exits"), {"after": ["stage1"]})
        if device == "macs":
            config.check(composed)
        else:
            with pytest.raises(ConfigError, match=r"saves no parameters, which device=parameters counts; leave exits"):
                config.check(composed)


def test_a_checkpoint_to_go_on_from_is_looked_for_before_any_work() -> None:
    for key in ("model.pretrain", "finetune"):
        composed = config.compose(CONF, "resnet_digits", "host", [f"{key}.resume_from=nowhere.ckpt"])
        with pytest.raises(ConfigError, match=rf"{key}\.resume_from: no file .*nowhere\.ckpt"):
            config.check(composed)


def test_a_joint_training_that_cannot_be_is_refused_before_any_work() -> None:
    uneven = ["polish.processes=3", "polish.batch_size=63"]
    composed = config.compose(CONF, "resnet_digits", "host", uneven)
    with pytest.raises(ConfigError, match=r"^polish\.joint .*: finetune\.batch_size: .* 3 processes; .*epochs to 0$"):
        config.check(composed)
    config.check(config.compose(CONF, "resnet_digits", "host", [*uneven, "finetune.batch_size=63"]))
    config.check(config.compose(CONF, "resnet_digits", "host", [*uneven, "polish.joint.epochs=0"]))


def test_training_from_scratch_needs_a_network_in_pytorch_and_a_section(tmp_path: Path) -> None:
    (tmp_path / "mine.onnx").touch()
    with pytest.raises(ConfigError, match=r"set weights to null"):
        config.check_files({"source": str(tmp_path / "mine.onnx"), "weights": "pretrain", "pretrain": {"epochs": 1}})
    with pytest.raises(ConfigError, match=r"needs the section model\.pretrain"):
        config.check_files({"source": "timm:resnet18", "weights": "pretrain", "pretrain": None})
    config.check_files({"source": "timm:resnet18", "weights": "pretrain", "pretrain": {"epochs": 1}})


def test_a_configuration_is_checked_without_asking_the_device() -> None:
    for device in config.options(CONF, "device"):
        config.check(config.compose(CONF, "resnet_digits", device))
    with pytest.raises(AutoTailorError, match=r"\[4711\] do not exist here"):
        config.check(config.compose(CONF, "resnet_digits", "host", ["device.cores=[4711]"]))


@pytest.mark.parametrize(
    ("device", "budget", "words"),
    [
        ("host", "{latency: 50%, size: 3}", r"unknown size; known are latency, energy, peak_memory, parameters, macs"),
        ("host", "{peak_memory: 3}", r"expected a limit of latency among its limits; add 'latency: 200%'"),
        ("host", "{latency: 50%, peak_memory: 30/s}", r"'30/s': expected a positive number of MiB"),
        ("macs", "{macs: 50%, peak_memory: 3}", r"unknown peak_memory; known are macs, parameters: correct"),
    ],
)
def test_budgets_of_several_limits_are_checked_before_any_work(
    device: str, budget: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(AutoTailorError, match=words):
        config.check(config.compose(CONF, "resnet_digits", device, [f"export.budgets=[{budget}]"]))
    fine = "{latency: 30/s, energy: 50%, peak_memory: 3, parameters: 2M}"
    composed = config.compose(CONF, "resnet_digits", "host", [f"export.budgets=[{fine},0.1,60%]"])
    config.validate(composed)
    config.check(composed)
    monkeypatch.setattr("autotailor.profiling.read_table", lambda path, device: LUT(()))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lut.csv").touch()
    composed["profile"]["lut"] = "~/lut.csv"
    with pytest.raises(ConfigError, match=r"limits energy, and .*lut\.csv holds none \(column energy_mj\)"):
        config.check(composed)
    composed["profile"]["lut"] = None
    composed["device"]["energy_seconds"] = 0
    with pytest.raises(ConfigError, match=r"limits energy, and device\.energy_seconds is 0 for host"):
        config.check(composed)


def test_without_a_device_there_is_no_table_and_budgets_are_counts(tmp_path: Path) -> None:
    composed = config.compose(CONF, "resnet_digits", "macs", ["export.budgets=['50%','300M',1.5]"])
    config.validate(composed)
    config.check(composed)
    composed["profile"]["lut"] = str(tmp_path / "lut.csv")
    with pytest.raises(
        ConfigError, match=r"device=macs counts MACs and has no use for latencies; leave lut=\.\.\. out"
    ):
        config.check(composed)
    for device, budget in (("macs", "30/s"), ("host", "300M")):
        with pytest.raises(AutoTailorError, match=f"budget '{budget}'"):
            config.check(config.compose(CONF, "resnet_digits", device, [f"export.budgets=['{budget}']"]))
    with_threads = composed | {"device": {"name": "macs", "cost": "macs", "threads": 1}}
    with pytest.raises(AutoTailorError, match=r"device: unknown keys \['threads'\]; known are \['cost', 'name'\]"):
        config.validate(with_threads)


def test_a_named_accelerator_that_is_absent_is_found_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for override in ("accelerator=cuda", "model.pretrain.accelerator=cuda:1", "sensitivity.accelerator=cuda"):
        composed = config.compose(CONF, "resnet_digits", "host", [override])
        with pytest.raises(AcceleratorError, match="NVIDIA"):
            config.check_accelerators(composed)
    config.check_accelerators(config.compose(CONF, "resnet50", "host"))


def test_a_machine_that_cannot_compile_networks_is_found_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=refuse))
    for key in ("finetune.compile", "polish.compile"):
        composed = config.compose(CONF, "resnet_digits", "host", [f"{key}=true"])
        with pytest.raises(CompilationError, match=f"^{key}: PyTorch cannot compile"):
            config.check_compilers(composed)
    config.check_compilers(config.compose(CONF, "resnet_digits", "host"))
    config.check_compilers(config.compose(CONF, "resnet_digits", "host", ["polish=none"]))


def test_what_the_joint_training_compiles_is_asked_of_the_accelerator_of_polish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr("autotailor.compute.accelerator.resolve", lambda name: name)
    monkeypatch.setattr("autotailor.compute.compilation.check_compiler", lambda *given: asked.append(given))
    chosen = ["finetune.compile=true", "finetune.accelerator=cpu", "polish.accelerator=cuda"]
    config.check_compilers(config.compose(CONF, "resnet_digits", "host", chosen))
    assert asked == [("cpu", "finetune.compile"), ("cuda", "finetune.compile")]


def test_a_table_stands_for_a_device_that_is_away() -> None:
    away = config.compose(CONF, "resnet_digits", "android", ["device.address=127.0.0.1:1"])
    config.check_device(away | {"profile": away["profile"] | {"lut": "theirs.csv"}})
    with pytest.raises(AutoTailorError, match="no ADB daemon answers"):
        config.check_device(away)


@pytest.fixture(autouse=True)
def _module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's."""
    mine = types.ModuleType("code_of_mine")

    def network(classes: int) -> nn.Module:
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, classes))

    vars(mine).update(
        good=lambda: network(CLASSES),
        small=lambda: network(5),
        large=lambda: nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, CLASSES)),
        broken=lambda: [][0],
        mean=lambda logits, labels, teacher, config: logits.mean(),
        rows=lambda logits, labels, teacher, config: logits.mean(1),
    )
    monkeypatch.setitem(sys.modules, "code_of_mine", mine)


def composed(of: str = "finetune", **section: Any) -> dict[str, Any]:
    """The embedded example, whose original network is trained first, with values of a section."""
    return config.compose(CONF, "resnet_digits", "macs", [f"{of}.{key}={value}" for key, value in section.items()])


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"teacher": "timm:resnet_of_nobody"}, "finetune.teacher timm:resnet_of_nobody: timm has no model"),
        ({"teacher": "timm:resnet18"}, "its own weights have 1000 classes, and the data have 10; name a teacher"),
        ({"teacher": "modules_of_nobody:one"}, "module modules_of_nobody cannot be imported"),
        ({"teacher": "code_of_mine:absent"}, "finetune.teacher code_of_mine:absent: .*name a function of the module"),
        ({"teacher": "code_of_mine:broken"}, r"failed with IndexError: .*, at test_checks\.py:\d+"),
        ({"teacher": "code_of_mine:small"}, r"code_of_mine:small: Sequential gives \[2, 5\] for 2 images"),
        ({"loss": "modules.of.nobody:one"}, "module modules.of.nobody cannot be imported"),
        ({"loss": "code_of_mine:rows"}, r"code_of_mine:rows returned a tensor of shape \[\d\]"),
    ],
    ids=str,
)
def test_what_training_could_not_use_is_refused_before_any_work(section: dict[str, str], says: str) -> None:
    with pytest.raises(TrainingError, match=says):
        config.check(composed(**section))


@pytest.mark.parametrize(
    ("teacher", "says"),
    [
        ("timm:resnet_of_nobody", "polish.teacher timm:resnet_of_nobody: timm has no model"),
        ("timm:resnet18", "polish.teacher timm:resnet18: its own weights have 1000 classes, and the data have 10"),
        ("code_of_mine:broken", r"polish.teacher code_of_mine:broken: .*failed with IndexError"),
        ("code_of_mine:small", r"polish.teacher code_of_mine:small: Sequential gives \[2, 5\] for 2 images"),
        ("code_of_mine:large", r"polish.teacher code_of_mine:large: Sequential cannot read images \[n, 3, 32, 32\]"),
    ],
)
def test_what_polishing_could_not_use_is_refused_before_any_work(teacher: str, says: str) -> None:
    with pytest.raises(TrainingError, match=says):
        config.check(composed("polish", teacher=teacher))
    config.check(composed("polish", teacher=teacher) | {"polish": composed("polish", rounds=[])["polish"]})


@pytest.mark.parametrize(
    ("of", "rule"),
    [
        ("finetune", "finetune"),
        ("finetune", "train_pool"),
        ("finetune", "compare"),
        ("finetune", "polish"),
        ("polish", "polish"),
    ],
)
def test_weights_that_cannot_be_fetched_are_refused_where_their_rule_will_run(
    of: str, rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    thousand = composed(of, teacher="timm:resnet18")
    thousand |= {"model": thousand["model"] | {"num_classes": 1000}}
    config.check_named_code(thousand)
    config.fetch_teachers(thousand, {"pretrain", "compile", "finetune"} - {of})
    if of == "finetune":
        alone = thousand["polish"] | {"joint": {"epochs": 0, "lr_share": 2.0}}
        config.fetch_teachers(thousand | {"polish": alone}, {"polish"})
    config.fetch_teachers(composed(of, teacher="code_of_mine:good"), {rule})
    with pytest.raises(
        TrainingError,
        match=rf"{of}\.teacher timm:resnet18: the pretrained weights of timm's resnet18 could not be fetched .*HF_HOME",
    ):
        config.fetch_teachers(thousand, {rule})


def test_what_training_can_use_is_accepted_and_no_network_of_timm_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timm.create_model", lambda *_, **__: pytest.fail("a network of timm was made"))
    config.check(composed(teacher="largest"))
    config.check(composed(teacher="code_of_mine:good", loss="code_of_mine:mean"))
    config.check(composed("polish", teacher="code_of_mine:good"))
    thousand = composed(teacher="timm:resnet18")
    config.check_named_code(thousand | {"model": thousand["model"] | {"num_classes": 1000}})


def test_a_teacher_is_tried_with_images_as_large_as_those_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.view(-1, 3 * SIDE * SIDE)[:, :CLASSES] - 1

    monkeypatch.setattr(sys.modules["code_of_mine"], "fixed", Fixed, raising=False)
    config.check(composed(teacher="code_of_mine:fixed", loss="code_of_mine:mean"))


def test_series_are_not_distorted_as_pictures() -> None:
    def sections(**augmentation: Any) -> dict[str, Any]:
        own = {"augmentation": {"mixup": 1.0}}
        return {
            "data": {"name": "mine", "kind": "series", "task": "classification", "labels": True},
            "model": {"pretrain": own},
            "finetune": own,
            "polish": {"augmentation": augmentation},
        }

    check_augmentation(sections(mixup=1.0, cutmix=1.0))
    for key, value in (("policy", "randaugment"), ("erasing", 0.5)):
        with pytest.raises(AutoTailorError, match=rf"^polish\.augmentation\.{key}: .*signals"):
            check_augmentation(sections(**{key: value}))


def test_data_of_a_stage_are_looked_for_before_any_work(tmp_path: Path) -> None:
    composed = config.compose(CONF, "resnet_digits", "macs", ["finetune.stages=[{data: folder, images: 100}]"])
    composed["finetune"]["stages"][0]["data"]["root"] = str(tmp_path / "nowhere")
    with pytest.raises(AutoTailorError, match=r"nowhere does not exist; put images there"):
        config.check(composed)
    composed = config.compose(CONF, "resnet_digits", "macs", ["finetune.stages=[{data: series, images: 100}]"])
    (tmp_path / "take.csv").write_text("a\n1\n2\n")
    composed["finetune"]["stages"][0]["data"] |= {"root": str(tmp_path), "labels": False}
    with pytest.raises(
        ConfigError, match=r"finetune\.stages: data series holds signals, and the network takes pictures"
    ):
        config.check(composed)
