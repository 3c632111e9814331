"""PyTorch: traced calls compute what their operators compute, and run without autotailor."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import autotailor
from autotailor.ir.execution.patterns import ATTENTION
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import DeviceConfig, DeviceError, ProfilingError, check, open_runtime
from autotailor.profiling.runtimes.runner import loop as runner_loop
from autotailor.profiling.runtimes.torch import runner as torch_runner
from autotailor.profiling.runtimes.torch.tracing import FeatureModule, trace
from features import FEATURES

RUNTIME = open_runtime(DeviceConfig.from_section({"name": "test", "runtime": "torch", "warmup": 1, "evict_mb": 0}))

HEADS = (1, 2, 9, 4)
MAP = (1, 4, 5, 5)
BACKWARDS = {"starts": (-1,), "ends": (-99,), "axes": (1,), "steps": (-1,)}
OWN = {
    ATTENTION: OperatorFeature(ATTENTION, (HEADS,) * 3, (HEADS,), (), (("scale", 0.5),)),
    "permuted": OperatorFeature("Gather", (MAP,), (MAP,), (), (("axis", 1), ("indices", (2, 0, 3, 1)))),
    "backwards": OperatorFeature("Slice", (MAP,), (MAP,), (), tuple(sorted(BACKWARDS.items()))),
    "expanded": OperatorFeature("Expand", ((1, 4, 1, 1),), (MAP,), (), (("shape", (1, 1, 5, 5)),)),
}


@pytest.mark.parametrize("name", [*FEATURES, *OWN])
def test_traced_calls_compute_the_operator(name: str) -> None:
    feature = (FEATURES | OWN)[name]
    program = torch_runner.load(RUNTIME.replicas(feature).to_manifest(), RUNTIME.settings())
    module = FeatureModule(feature).eval()
    traced = trace(module, [torch.rand(shape) for shape in feature.inputs]).weights
    by_identity = {id(tensor): key for key, tensor in traced.items()}
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if id(tensor) in by_identity:
                tensor.copy_(program.weights[1][by_identity[id(tensor)]])
        expected = module(*program.inputs.values())
    found = program.compute({**program.inputs, **program.weights[1]})
    assert found.shape == feature.outputs[0]
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_runner_needs_no_autotailor(tmp_path: Path) -> None:
    programs = [RUNTIME.sink(), RUNTIME.harness(), *(RUNTIME.replicas(FEATURES[n]) for n in ("stem", "split", "gate"))]
    batch = {"seconds": 0.01, "least_passes": 4, "blocks": 2, "programs": [p.to_manifest() for p in programs]}
    (tmp_path / "manifest.json").write_text(json.dumps({"settings": RUNTIME.settings(), "batches": [batch]}))
    for source in (runner_loop.__file__, torch_runner.__file__):
        (tmp_path / Path(source).name).write_bytes(Path(source).read_bytes())
    hidden = "import sys; sys.modules['autotailor'] = None; sys.argv = sys.argv[1:]"
    words = [sys.executable, "-c", f"{hidden}; import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"]
    words += ["loop.py", "runner.py", "manifest.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["key"] for line in lines if line["event"] == "program"] == [p.key for p in programs], done.stderr
    assert all(min(line["long"]) > 0 for line in lines if line["event"] == "program")


def test_a_converted_network_computes_the_network(tmp_path: Path) -> None:
    net = autotailor.compile("autotailor.zoo:mobilenet_digits", resolution=32)
    net.export_onnx(net.smallest(), tmp_path / "model.onnx")
    RUNTIME.convert(tmp_path / "model.onnx", tmp_path)
    side = net.shapes(net.smallest())[net.graph.input][-1]
    images = np.random.default_rng(0).random((2, 3, side, side), dtype=np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    expected = np.concatenate([session.run(None, {"input": image[None]})[0] for image in images])
    assert np.abs(RUNTIME.run(tmp_path, images) - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_file_that_is_no_network_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("no network")
    with pytest.raises(ProfilingError, match="cannot be read as a network"):
        RUNTIME.convert(tmp_path / "model.onnx", tmp_path / "out")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"options": {"device": "tpu"}}, "expected cpu, cuda"),
        ({"options": {"layout": 1}}, "unknown torch options layout"),
        ({"precision": "fp16"}, "fp32 on processors"),
        ({"options": {"device": "cuda"}}, "finds no CUDA"),
    ],
)
def test_senseless_options_are_refused(values: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match=words):
        check(DeviceConfig.from_section({"name": "test", "runtime": "torch", **values}))
