"""Copies of an operator read what the network's operator reads: weights on the left, conditions as booleans."""

import re

import numpy as np
import pytest

import autotailor
from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.profiling.runtimes import Runtime
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.feature_nodes import feature_nodes
from autotailor.profiling.runtimes.onnxruntime import runner as onnxruntime_runner
from autotailor.profiling.runtimes.torch import runner as torch_runner
from onnx_text import KERNEL, model_of

PRODUCTS = {
    "MatMul": "y = MatMul (left, r)",
    "MatMul with a bias": "m = MatMul (left, r)  y = Add (m, shift)",
    "Einsum": 'y = Einsum <equation = "dc,bcn->bdn"> (left, r)',
}
RUNNERS = {"onnxruntime": onnxruntime_runner, "torch": torch_runner}


def network(product: str) -> autotailor.SuperNet:
    """A constant matrix times the pixels of a map."""
    rng = np.random.default_rng(0)
    drawn = {"left": (6, 4), "shift": (6, 1), "fc": (5, 6)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in drawn.items()}
    stem = "c = Conv (x, kernel)  r = Reshape (c, pixels)"
    body = f"{stem}  {product}  p = ReduceMean <keepdims = 0> (y, last)  z = Gemm <transB = 1> (p, fc)"
    given = {"kernel": KERNEL, "pixels": [1, 4, -1], "last": [2], **weights}
    return autotailor.compile(model_of(body, given, outputs="float[n, classes] z"))


def product_of(net: autotailor.SuperNet, runtime: Runtime) -> OperatorFeature:
    return next(f for f in net.operators(net.largest(), runtime.fusion) if f.kind in ("MatMul", "Einsum"))


@pytest.mark.parametrize("name", RUNNERS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_constant_matrix_on_the_left_is_measured_there(product: str, name: str) -> None:
    net, runtime = network(PRODUCTS[product]), open_runtime(DeviceConfig.from_section({"name": "t", "runtime": name}))
    feature = product_of(net, runtime)
    made = feature_nodes(feature, ["in0"], "c")
    assert made.nodes[0].inputs[:2] == ("c.w0", "in0")
    assert "operands" not in made.nodes[0].values
    sequence, subnet = net.sequence(net.largest(), runtime.fusion), net.largest()
    programs: list[Program | None] = [runtime.replicas(feature)]
    programs.append(runtime.in_place("net", sequence, net.shapes(subnet)[net.graph.input][1:], ()))
    for program in filter(None, programs):
        loaded = RUNNERS[name].load(program.to_manifest(), runtime.settings())  # type: ignore[attr-defined]
        assert all(loaded.run(which) > 0 for which in range(loaded.lengths))


CHOICES = {
    "a condition of the image": "l = Greater (r, some)  y = Where (l, r, other)",
    "a condition of the image before a constant": "l = Greater (r, some)  y = Where (l, other, r)",
    "a constant condition": "y = Where (mask, other, r)",
}


@pytest.mark.parametrize("choice", CHOICES)
def test_conditions_are_booleans(choice: str) -> None:
    runtime = open_runtime(DeviceConfig.from_section({"name": "t", "runtime": "onnxruntime"}))
    mask = np.random.default_rng(0).random((1, 4, 36)) < 0.5
    stem = "c = Conv (x, kernel)  r = Reshape (c, pixels)"
    body = f"{stem}  {CHOICES[choice]}  p = ReduceMean <keepdims = 0> (y, last)  z = Gemm <transB = 1> (p, fc)"
    given = {"kernel": KERNEL, "pixels": [1, 4, -1], "last": [2], "mask": mask, "some": 0.5, "other": -1.0}
    net = autotailor.compile(model_of(body, {**given, "fc": [[1.0, 2.0, 3.0, 4.0]] * 5}, outputs="float[n, classes] z"))
    sequence, features = net.sequence(net.largest(), runtime.fusion), net.operators(net.largest(), runtime.fusion)
    assert not runtime.refusals(features)
    programs = [runtime.replicas(next(f for f in features if f.kind == "Where"))]
    programs += filter(None, [runtime.in_place("net", sequence, (3, 8, 8), ())])
    for program in programs:
        loaded = onnxruntime_runner.load(program.to_manifest(), runtime.settings())
        assert all(loaded.run(which) > 0 for which in range(loaded.lengths))


@pytest.mark.parametrize("name", RUNNERS)
def test_what_a_library_refuses_is_refused_with_its_reason(name: str) -> None:
    runtime = open_runtime(DeviceConfig.from_section({"name": "t", "runtime": name}))
    table = OperatorFeature("Gather", ((1, 4, 6),), ((1, 4, 2, 2),), ((2, 2),), freeze_attributes({"axis": 2}))
    assert re.fullmatch(rf"operator {table.id}: .+", runtime.refusals([table])[table.id])


@pytest.mark.parametrize("product", PRODUCTS)
def test_its_multiplications_are_counted(product: str) -> None:
    net = network(PRODUCTS[product])
    stem, head = 36 * 4 * 27, 5 * 6
    assert net.macs().predict([net.largest().indices])[0] * 1e6 == pytest.approx(stem + 6 * 4 * 36 + head)
