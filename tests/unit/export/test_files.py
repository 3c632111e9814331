"""Exported files: verified, verifiable by hand, and refused when they are wrong."""

import io
import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig, calibrate, evaluate
from autotailor.data import resize
from autotailor.export import ExportError, accuracy_of_onnx, export, inherited, polished
from autotailor.profiling import DeviceConfig, ProfilingError, open_runtime
from onnx_text import HEAD, KERNEL, model_of

RUNTIME = open_runtime(DeviceConfig.from_section({"name": "test"}))
CALIBRATION = CalibrationConfig(images=48, batch_size=24)
FILES = {"model.onnx", "model.pt2", "model.ncnn.param", "model.ncnn.bin", "subnet.json", "verification.json"}


@pytest.fixture(scope="module")
def exported(resnet_net: autotailor.SuperNet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("export")
    splits = tiny_data.splits()
    subnet = resnet_net.smallest()
    statistics = calibrate(resnet_net.module().eval(), subnet, splits, CALIBRATION)
    verification = export(inherited(resnet_net, subnet, statistics), directory, splits.test, RUNTIME)
    assert verification.passed
    return directory


def test_every_file_is_there(exported: Path, resnet_net: autotailor.SuperNet) -> None:
    assert {path.name for path in exported.iterdir()} >= FILES
    subnet = json.loads((exported / "subnet.json").read_text())
    assert subnet["assignment"] == resnet_net.smallest().assignment
    assert subnet["input_shape"] == [1, 3, 20, 20]


def test_the_verification_holds_when_repeated_by_hand(exported: Path) -> None:
    verification = json.loads((exported / "verification.json").read_text())
    images, _ = next(iter(tiny_data.splits().test.batches(verification["images"]["shape"][0])))
    images = resize(images, verification["images"]["shape"][-1]).numpy()
    session = onnxruntime.InferenceSession(str(exported / "model.onnx"))
    logits = np.concatenate([session.run(None, {"input": image[None]})[0] for image in images])
    reference = np.array(verification["reference"])
    assert np.abs(logits - reference).max() / np.abs(reference).max() < 1e-4
    assert [c["runtime"] for c in verification["comparisons"]] == ["onnxruntime", "torch", "ncnn"]
    assert all(0 <= c["max_relative_error"] < 1e-4 for c in verification["comparisons"])


def test_the_pytorch_file_takes_any_batch(exported: Path) -> None:
    module = torch.export.load(io.BytesIO((exported / "model.pt2").read_bytes())).module()
    assert module(torch.randn(5, 3, 20, 20)).shape == (5, 5)


@pytest.mark.parametrize("answer", [0.0, np.nan])
def test_a_runtime_that_computes_something_else_is_caught(
    answer: float, resnet_net: autotailor.SuperNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RUNTIME, "run", lambda directory, x: np.full((len(x), 5), answer, dtype=np.float32))
    splits, subnet = tiny_data.splits(), resnet_net.largest()
    statistics = calibrate(resnet_net.module().eval(), subnet, splits, CALIBRATION)
    with pytest.raises(ExportError, match=r"model\.ncnn differs from the SuperNet"):
        export(inherited(resnet_net, subnet, statistics), tmp_path, splits.test, RUNTIME)


@pytest.mark.parametrize("fails", ["convert", "run"])
def test_files_of_a_runtime_that_does_not_measure_are_left_out_where_it_cannot_run_the_network(
    fails: str, resnet_net: autotailor.SuperNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ProfilingError("pnnx cannot convert it")

    wrong = {"convert": refuse, "run": lambda directory, x: np.zeros((len(x), 5), dtype=np.float32)}
    monkeypatch.setattr(RUNTIME, fails, wrong[fails])
    splits, subnet = tiny_data.splits(), resnet_net.largest()
    statistics = calibrate(resnet_net.module().eval(), subnet, splits, CALIBRATION)
    verification = export(inherited(resnet_net, subnet, statistics), tmp_path, splits.test, RUNTIME, needed=False)
    assert verification.passed
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"model.ncnn.param", "model.ncnn.bin"}
    said = json.loads((tmp_path / "verification.json").read_text())
    assert [c["runtime"] for c in said["comparisons"]] == ["onnxruntime", "torch"]
    assert {"convert": "pnnx cannot convert it", "run": "differs from the SuperNet"}[fails] in said["left_out"]["ncnn"]
    with pytest.raises(ExportError if fails == "run" else ProfilingError):
        export(inherited(resnet_net, subnet, statistics), tmp_path, splits.test, RUNTIME)


def test_a_network_over_which_ncnn_crashes_is_exported_for_another_runtime(tmp_path: Path) -> None:
    splits = tiny_data.splits()
    net = autotailor.compile(networks.Inside().eval(), {}, resolution=20)
    verification = export(inherited(net, net.largest(), {}), tmp_path, splits.test, RUNTIME, needed=False)
    assert verification.passed
    assert "ncnn ends its process" in verification.left_out["ncnn"]


def test_accuracy_of_the_file_is_that_of_the_supernet(exported: Path, resnet_net: autotailor.SuperNet) -> None:
    splits, module = tiny_data.splits(), resnet_net.module().eval()
    statistics = calibrate(module, resnet_net.smallest(), splits, CALIBRATION)
    by_file = accuracy_of_onnx(exported / "model.onnx", splits.test)
    by_supernet = evaluate(module, resnet_net.smallest(), splits.test, statistics).values
    assert np.array_equal(by_file, by_supernet)


def test_a_polished_subnet_is_exported_with_its_own_weights(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    splits, subnet, random = tiny_data.splits(), resnet_net.smallest(), np.random.default_rng(0)
    sliced = resnet_net.slice(subnet)
    kernels = {name: weight for name, weight in sliced.weights.items() if weight.ndim == 4}
    graph = sliced.with_weights(
        {name: random.normal(0, 0.1, w.shape).astype(np.float32) for name, w in kernels.items()}
    )
    verification = export(polished(resnet_net, subnet, graph), tmp_path, splits.test, RUNTIME)
    assert verification.passed
    assert json.loads((tmp_path / "subnet.json").read_text())["weights"] == "polished"
    logits = np.array(verification.reference)
    images = resize(next(iter(splits.test.batches(len(logits))))[0], 20)
    with torch.no_grad():
        shared = resnet_net.build(subnet)(images).numpy()
    assert np.abs(shared - logits).max() > 0.1 * np.abs(logits).max()


def test_a_network_of_bytes_gets_a_verified_file_that_takes_bytes(tmp_path: Path) -> None:
    body = f"c = Cast <to = 1> (x)  i = Transpose <perm = [0, 3, 1, 2]> (c)  t = Conv (i, k)  {HEAD}"
    weights = {"k": KERNEL, "fc": np.eye(5, 4, dtype=np.float32)}
    net = autotailor.compile(model_of(body, weights, shape=(1, 32, 32, 3), kind="uint8"), {})
    network = polished(net, net.largest(), net.slice(net.largest()))
    found = export(network, tmp_path, tiny_data.splits().test, RUNTIME, needed=False)
    assert "model.given.onnx" in {each.file for each in found.comparisons}
    session = onnxruntime.InferenceSession(str(tmp_path / "model.given.onnx"))
    assert (session.get_inputs()[0].type, session.get_inputs()[0].shape) == ("tensor(uint8)", [1, 32, 32, 3])
    assert json.loads((tmp_path / "subnet.json").read_text())["given"] == "uint8 [1, 32, 32, 3]"
