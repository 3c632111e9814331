"""Broken and strange files: a clear error, or a SuperNet that equals the original; never anything else."""

import contextlib
import functools
import io
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import autotailor
import networks
from autotailor.ir.description import describe
from autotailor.ir.errors import AutoTailorError, GraphError
from mutations import strange_files
from reference import Array, run

rng = np.random.default_rng(0)
FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
IMAGE = rng.standard_normal((1, 3, 16, 16)).astype(np.float32)


def weights(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


@functools.cache
def small_file() -> bytes:
    """A file with residual, depthwise and gated blocks, its weights in the front of the bytes as exporters write it."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        *networks.conv_bn(3, 8, 3, 2), torch.nn.ReLU6(), networks.InvertedResidual(8, 16, 8, gate=True),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3),
    ).eval()  # fmt: skip
    buffer = io.BytesIO()
    torch.onnx.export(
        network, (torch.zeros(1, 3, 16, 16),), buffer, dynamo=False, opset_version=13, do_constant_folding=False
    )
    return buffer.getvalue()


def accept_or_refuse(content: bytes, path: Path) -> None:
    """Compiles a file; what is accepted computes what onnxruntime computes from it."""
    path.write_bytes(content)
    try:
        net = autotailor.compile(path)
    except AutoTailorError:
        return
    try:
        expected = run(onnx.load(path), IMAGE)
    except Exception:  # onnxruntime refuses the file: nothing to compare with
        return
    with torch.no_grad():
        found = net.build(net.largest())(torch.from_numpy(IMAGE)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * float(np.nanmax(np.abs(expected), initial=1.0)))
    net.shapes(net.smallest())


@FUZZ
@given(share=st.floats(0, 1))
def test_truncated_files(share: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = small_file()
    accept_or_refuse(content[: int(share * len(content))], tmp_path_factory.getbasetemp() / "cut.onnx")


@FUZZ
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    content = bytearray(small_file())
    for place, bit in flips:
        content[int(place * len(content))] ^= 1 << bit
    accept_or_refuse(bytes(content), tmp_path_factory.getbasetemp() / "flipped.onnx")


@functools.cache
def skeleton() -> tuple[bytes, tuple[bytes, ...]]:
    """The small file without its weights, and the weights: flips hit what says something."""
    model = onnx.load_from_string(small_file())
    tensors = tuple(tensor.SerializeToString() for tensor in model.graph.initializer)
    del model.graph.initializer[:]
    return model.SerializeToString(), tensors


@settings(FUZZ, max_examples=150)
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes_of_the_graph(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    graph, tensors = skeleton()
    content = bytearray(graph)
    for place, value in flips:
        content[int(place * len(content))] = value
    try:
        model = onnx.load_from_string(bytes(content))
    except Exception:
        return  # covered by the test above
    for tensor in tensors:
        model.graph.initializer.add().ParseFromString(tensor)
    accept_or_refuse(model.SerializeToString(), tmp_path_factory.getbasetemp() / "changed.onnx")


def compile_or_refuse(content: bytes, path: Path) -> None:
    """Compiles a file and asks for what ``inspect`` prints; only AutoTailorErrors may come of it."""
    path.write_bytes(content)
    with contextlib.suppress(AutoTailorError):
        net = autotailor.compile(path)
        net.shapes(net.smallest())
        net.sample(np.random.default_rng(0))
        json.dumps(describe(net))


@settings(FUZZ, max_examples=100)
@given(content=st.deferred(lambda: strange_files(small_file())))
def test_strange_bytes_are_refused_without_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    compile_or_refuse(content, tmp_path_factory.getbasetemp() / "strange.onnx")


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@settings(FUZZ, max_examples=1000, derandomize=False, print_blob=True)
@given(content=st.deferred(lambda: strange_files(small_file())))
def test_a_thousand_strange_files_are_refused_without_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    compile_or_refuse(content, tmp_path_factory.getbasetemp() / "strange.onnx")


@pytest.mark.parametrize("position", range(4))
def test_weights_of_another_length_than_they_say(position: int) -> None:
    model = onnx.load_from_string(small_file())
    tensor = model.graph.initializer[position]
    tensor.raw_data = tensor.raw_data[:-4]
    with pytest.raises(GraphError):
        autotailor.compile(model)


def test_onnxruntime_agrees_on_the_unbroken_file(tmp_path: Path) -> None:
    accept_or_refuse(small_file(), tmp_path / "good.onnx")
    assert onnxruntime.InferenceSession(str(tmp_path / "good.onnx"))
    assert not autotailor.compile(tmp_path / "good.onnx").static_parts
