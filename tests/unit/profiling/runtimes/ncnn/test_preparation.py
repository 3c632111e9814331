"""What pnnx reads only in one form is given to it in that form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotailor
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.profiling.runtimes.ncnn.claims import claims
from onnx_text import HEAD, KERNEL, model_of
from reference import run


def test_a_pad_that_leaves_its_defaults_out_is_converted(tmp_path: Path) -> None:
    assert_converted("t = Pad (c, pads)", tmp_path, pads=np.array([0, 0, 1, 1, 0, 0, 2, 1]))


@pytest.mark.parametrize(
    "pool",
    [
        "t = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 0, 0]> (c)",
        "t = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (c)",
        "t = AveragePool <kernel_shape = [3, 3], pads = [0, 1, 2, 0], count_include_pad = 1> (c)",
    ],
)
def test_unequal_pads_of_a_pooling_are_converted(pool: str, tmp_path: Path) -> None:
    assert_converted(pool, tmp_path)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_reduction_over_tokens_whose_axis_is_an_input_is_converted(kind: str, keepdims: int, tmp_path: Path) -> None:
    body = f"a = Reshape (c, flat)  b = Transpose <perm = [0, 2, 1]> (a)  r = {kind} <keepdims = {keepdims}> (b, axes)"
    shapes = {"flat": np.array([-1, 4, 36]), "axes": np.array([1]), "back": np.array([-1, 4, 1, 1])}
    assert_converted(f"{body}  t = Reshape (r, back)", tmp_path, opset=18, **shapes)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean"])
def test_a_reduction_whose_axis_is_an_input_is_the_layer_of_the_table(kind: str, tmp_path: Path) -> None:
    """Whatever the opset: the table does not know at which one a network is exported."""
    body = f"c = Conv (x, w)  g = Gelu (c)  r = {kind} <keepdims = 0> (g, axes)  y = Flatten (r)"
    model = model_of(body, {"w": KERNEL, "axes": np.array([2])}, opset=20)
    net, runtime = autotailor.compile(model, {}, resolution=8), open_runtime(DeviceConfig("host"))
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    runtime.convert(tmp_path / "model.onnx", tmp_path)
    features = [feature for place in net.places(runtime.fusion) for feature in place.operators]
    bill = claims(tmp_path / "model.ncnn.param", features, net.input_shape)
    assert bill.complete, (bill.unclaimed, bill.idle)
    image = np.random.default_rng(0).standard_normal(net.input_shape).astype(np.float32)
    np.testing.assert_allclose(runtime.run(tmp_path, image), run(model, image), rtol=1e-4, atol=1e-5)


def assert_converted(body: str, tmp_path: Path, opset: int = 17, **weights: Any) -> None:
    """ncnn computes what onnxruntime computes for a convolution c, the body from c to t, and a classifier."""
    known = {"w": KERNEL, "fc": np.eye(4, dtype=np.float32), **weights}
    model = model_of(f"c = Conv (x, w)  {body}  {HEAD}", known, opset=opset)
    (tmp_path / "pad.onnx").write_bytes(model.SerializeToString())
    runtime = open_runtime(DeviceConfig.from_section({"name": "host"}))
    runtime.convert(tmp_path / "pad.onnx", tmp_path)
    image = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(runtime.run(tmp_path, image), run(model, image), rtol=1e-4, atol=1e-5)
