"""``python -m autotailor inspect``: what it prints, and what it says of bad input."""

import re
import subprocess
import sys
from pathlib import Path

import onnx_ir
import pytest
import torch
import yaml
from torch import nn

import autotailor
import networks
from autotailor.__main__ import main
from autotailor.commands.inspect.tables import WIDTH
from autotailor.compiler.sources.export import export_module
from autotailor.config.run import ModelConfig


class Odd(nn.Module):
    """A residual block, and a cumulative sum over channels, which cannot change."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.block = networks.Bottleneck(16, 8, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cumsum(self.block(self.stem(x)), 1).mean((2, 3)))


@pytest.fixture
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An ONNX file of one of the small networks, 32x32."""
    network = Odd().eval() if request.param == "odd" else networks.make(request.param)
    path = tmp_path / f"{request.param}.onnx"
    onnx_ir.save(export_module(network, 32), path)
    return path


def inspect(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["inspect", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("model", ["mobilenet"], indirect=True)
def test_it_prints_what_was_found(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = inspect(capsys, model)
    net = autotailor.compile(model)
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines()) <= WIDTH
    assert re.search(r"stage1 +block1 +InvertedResidual +24 x 8 x 8 +- +kernel_size, expand_ratio", out)
    assert re.search(r"block3 +InvertedResidual +24 x 8 x 8 +1 of 1 +kernel_size, expand_ratio", out)
    for variable in net.space:
        assert re.search(rf"^ {variable.kind} .* {' '.join(f'{c:g}' for c in variable.choices)} *$", out, re.MULTILINE)
    assert f"Modifications {net.space.num_modifications}, variants {net.space.num_variants:,}" in out
    costs = net.macs().predict([net.largest().to_array(), net.smallest().to_array()])
    for name, cost in zip(("largest", "smallest"), costs, strict=True):
        assert re.search(rf"^ {name} .* {cost:,.1f} ", out, re.MULTILINE)
    assert "Static parts: none" in out
    assert "The images stay" not in out


def wide_file(path: Path) -> Path:
    """An ONNX file of a network that takes images of 32 x 48 pixels, fixed by the export."""
    torch.onnx.export(Odd().eval(), (torch.zeros(1, 3, 32, 48),), str(path), dynamo=False)
    return path


def test_a_network_that_is_not_square_is_shown_and_gets_no_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = wide_file(tmp_path / "wide.onnx")
    code, out, _ = inspect(capsys, wide)
    assert code == 0
    assert re.search(r"largest +32 x 48 ", out)
    code, out, err = inspect(capsys, wide, "--yaml")
    assert (code, out) == (1, "")
    assert "wide.onnx takes images of 32 x 48 pixels, and a run prepares square pictures: export it for square" in err


@pytest.mark.parametrize("model", ["grouped"], indirect=True)
def test_a_static_resolution_is_said(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = inspect(capsys, model)
    assert "resolution" not in {v.name for v in autotailor.compile(model).space}
    assert "The images stay 32 x 32" in out


def test_batch_norm_is_put_back_on_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 5),
    )  # fmt: skip
    onnx_ir.save(export_module(network.eval(), 32), path := tmp_path / "plain.onnx")
    _, out, _ = inspect(capsys, path)
    assert "No BatchNorm, and 2 convolutions with a bias" in out
    _, out, _ = inspect(capsys, path, "--batch-norm", "reinsert")
    assert "BatchNorm was put back behind 2 operators" in out
    _, out, _ = inspect(capsys, path, "--batch-norm", "reinsert", "--yaml")
    assert "batch_norm: reinsert" in out


@pytest.mark.parametrize("model", ["odd"], indirect=True)
def test_static_parts_have_reasons(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = inspect(capsys, model)
    assert code == 0
    assert "Static parts (1)" in out
    (part,) = autotailor.compile(model).static_parts
    assert re.search(rf"1 +CumSum +{part.reason} +/CumSum", out)
    assert "Where no variable reaches" in out
    assert "its widths are tied to a static part" in " ".join(re.sub(r"\s+", " ", out).split())


@pytest.mark.parametrize("model", ["resnet", "mobilenet", "grouped"], indirect=True)
def test_the_printed_configuration_gives_the_same_space(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = inspect(capsys, model, "--yaml")
    assert code == 0
    config = yaml.safe_load(out)
    assert config["source"] == str(model)
    assert ModelConfig.from_section(config).source == str(model)
    proposed = autotailor.compile(model).space
    assert autotailor.compile(config["source"], config["space"]).space.variables == proposed.variables
    path = tmp_path / "mine.yaml"
    path.write_text(out)
    assert inspect(capsys, model, "--space", path, "--yaml")[1].splitlines()[1:] == out.splitlines()[1:]


SPEAKING = """
import networks
print("the module is imported")
def make():
    print("the network is made")
    network = networks.make("resnet")
    network.register_forward_hook(lambda *_: print("the network runs"))
    return network
"""


def test_what_a_factory_prints_is_no_part_of_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "speaking.py").write_text(SPEAKING)
    monkeypatch.syspath_prepend(tmp_path)
    code, out, err = inspect(capsys, "speaking:make", "--resolution", 32, "--yaml")
    assert code == 0
    assert yaml.safe_load(out)["source"] == "speaking:make"
    for said in ("the module is imported", "the network is made", "the network runs"):
        assert said in err
        assert said not in out


def test_a_configured_space_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("{depth: [0, 1], divisor: 4}")
    code, out, _ = inspect(capsys, "autotailor.zoo:resnet_digits", "--space", path, "--resolution", 32)
    assert code == 0
    assert re.search(r"^ depth +stage1-3 +0 1 *$", out, re.MULTILINE)
    assert "proposed" not in out
    assert "Modifications 6, variants 8, distinct 8" in out


def test_random_weights_need_no_network(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = inspect(capsys, "timm:resnet10t", "--random-weights", "--resolution", 64)
    assert code == 0
    assert "BasicResidual" in out
    assert "Random weights" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.onnx"], "ONNX file nowhere.onnx does not exist"),
        (["resnet50"], "expected a path ending in .onnx, timm:NAME, or module:factory"),
        (
            ["models/mine.pth"],
            "give that network as the source, and the file as its weights (model.weights: models/mine",
        ),
        (["best.pth.tar"], "--weights best.pth.tar of inspect"),
        (["code/nets.py"], "Name the function in the file that makes the network, as code.nets:FUNCTION"),
        (["timm:resnet5O"], "timm has no model 'resnet5O'; similar names"),
        (["networks.py:TinyResNet"], "name the module without .py: networks:TinyResNet"),
        (["no.such.module:make"], "module no.such.module cannot be imported"),
        (["autotailor.zoo:ZooError"], "has no attribute 'ZooError'"),
        (["autotailor.zoo:resnet_digits", "--random-weights"], "--random-weights is only for timm:NAME"),
        (["autotailor.zoo:resnet_digits", "--resolution", "0"], "at least 1 pixel"),
        (["autotailor.zoo:resnet_digits", "--weights", "nowhere.pt"], "weights file nowhere.pt does not exist"),
        (["autotailor.zoo:resnet_digits", "--space", "nowhere.yaml"], "--space nowhere.yaml: cannot be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_errors_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = inspect(capsys, *arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "expected a section"),
        ("space: [1", "is not YAML"),
        ("{depths: [0]}", r"unknown keys \['depths'\]"),
        ("{depth: {stage9: [0, 1]}}", "the network has"),
        ("{width: [2.0]}", "no more than 1"),
    ],
)
def test_spaces_that_cannot_be_are_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(text)
    code, out, err = inspect(capsys, "autotailor.zoo:resnet_digits", "--resolution", 32, "--space", path)
    assert (code, out) == (1, "")
    assert re.search(message, err)
    assert len(err.splitlines()) == 1


def test_a_damaged_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "damaged.onnx"
    path.write_bytes(b"\x08\x07no model")
    code, out, err = inspect(capsys, path)
    assert (code, out) == (1, "")
    assert "damaged.onnx is no valid ONNX file" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["inspect"], ["inspekt", "x"], ["inspect", "x", "--resolution", "wide"]])
def test_arguments_that_make_no_sense_leave_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: autotailor" in capsys.readouterr().err


def test_the_module_runs_and_help_needs_no_torch() -> None:
    code = "import runpy, sys; sys.argv = ['autotailor', 'inspect', '--help']\n"
    code += "try: runpy.run_module('autotailor', run_name='__main__')\n"
    code += "except SystemExit: assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "--random-weights" in done.stdout


def test_a_device_that_cannot_run_the_network_is_named_with_what_it_lacks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    conf = ["--conf", str(Path(__file__).parents[4] / "conf"), "--resolution", "32"]
    assert main(["inspect", "windows:windowed_digits", "--device", "host", *conf]) == 1
    assert "the runtime ncnn cannot run the network windowed_digits. It lacks\n  Reshape" in capsys.readouterr().err
    assert main(["inspect", "windows:windowed_digits", "--device", "host_onnxruntime", *conf]) == 0
    assert "Device host_onnxruntime: its runtime onnxruntime can run every operator." in capsys.readouterr().out
    assert main(["inspect", "windows:windowed_digits", "--device", "host", "--yaml", *conf]) == 1
    refused = capsys.readouterr()
    assert refused.out == ""
    assert "the runtime ncnn cannot run the network windowed_digits" in refused.err
    assert main(["inspect", "windows:windowed_digits", "--device", "hots", *conf]) == 1
    assert "unknown device 'hots'" in capsys.readouterr().err
