"""A network that its device cannot run ends the run before anything is trained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import autotailor
from autotailor import config
from autotailor.commands import feasibility
from returning import Pan

ROOT = Path(__file__).parents[2]
TESTS = Path(__file__).parents[1]
WINDOWED = ["model.source=windows:windowed_digits", "model.space.resolution=[]", "model.space.width=[]"]


def test_a_device_that_cannot_run_the_network_says_so_before_training(tmp_path: Path) -> None:
    snakemake = Path(sys.executable).with_name("snakemake")
    done = subprocess.run(
        [str(snakemake), "--directory", str(tmp_path), "--cores", "1", "--config", f"overrides={WINDOWED}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode != 0
    assert "autotailor: device host: the runtime ncnn cannot run the network resnet_digits. It lacks" in done.stderr
    assert "Reshape" in done.stderr
    assert "device.runtime=onnxruntime" in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_network_to_be_trained_is_asked_about_with_random_weights() -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "host")
    assert composed["model"]["weights"] == "pretrain"
    assert feasibility.examined({"model": composed["model"], "device": composed["device"], "compiled": None})[0] == ""


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.space.blocks.Bottleneck.expand_ratio=[2.0]", "holds weights for expand ratio 0.25 at most"),
        ("model.space.skip=['*']", "nothing of it can change"),
        ("model.num_classes=7", ""),
    ],
)
def test_a_space_is_asked_about_without_a_device(override: str, message: str) -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "macs", [override])
    told = feasibility.examined({"model": composed["model"], "device": None, "compiled": None})[0]
    assert message in told
    assert bool(told) == bool(message)


def test_exits_behind_a_stage_that_the_network_lacks_are_refused_before_any_work() -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "macs")
    composed["model"]["space"]["exits"] = {"after": ["stage1", "stag2"]}
    told = feasibility.examined({"model": composed["model"], "device": None, "compiled": None})[0]
    assert "space.exits.after: network resnet_digits has no 'stag2'" in told
    assert "Did you mean 'stage2'?" in told


def test_a_network_of_other_classes_than_configured_is_refused_before_it_is_trained() -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "macs")
    composed["model"] |= {"source": "windows:windowed_digits", "num_classes": 7, "space": {}}
    told = feasibility.examined({"model": composed["model"], "device": None, "compiled": None})[0]
    assert "it has 10 classes, model.num_classes is 7" in told


def test_a_compiled_supernet_is_not_compiled_again(tmp_path: Path, resnet_net: autotailor.SuperNet) -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "host")
    composed["model"]["source"] = "nowhere:nothing"
    question = {"model": composed["model"], "device": composed["device"], "compiled": None}
    assert "module nowhere cannot be imported" in feasibility.examined(question)[0]
    resnet_net.save(tmp_path / "compiled.pt")
    assert feasibility.examined({**question, "compiled": str(tmp_path / "compiled.pt")})[0] == ""


def test_a_process_that_dies_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(feasibility.FeasibilityError, match=r"it is unknown whether .* exit code 1"):
        feasibility.check_operators({"model": {"name": "m"}, "device": {"name": "d"}})
    with pytest.raises(feasibility.FeasibilityError, match=r"model m: it is unknown whether .* exit code 1"):
        feasibility.check_space({"model": {"name": "m"}})


def test_what_training_costs_is_said_from_a_timed_step(resnet_net: autotailor.SuperNet) -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "host", ["polish=given", "recipe=quick", "workers=2"])
    said = feasibility.cost_of_training({**composed, "export": {"budgets": ["70%", "50%"]}}, 0.1)
    assert said.startswith(
        "Recipe quick: 2 SubNets are trained, each with 3,960 images or a few more, in 0:07:00 at most"
    )
    assert feasibility.cost_of_training(config.compose(ROOT / "conf", "resnet_digits", "host"), 0.1) == ""
    assert 0 < feasibility.seconds_of_training(resnet_net, 2) < 60


def test_a_step_of_a_network_with_several_outputs_is_timed() -> None:
    net = autotailor.compile(Pan(), resolution=64)
    assert len(net.graph.outputs) == 3
    assert 0 < feasibility.seconds_of_training(net, 2) < 60
