"""ONNX Runtime: its replicas hold what its optimizer makes of operators, and compute them."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
import torch

import autotailor
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.profiling import DeviceConfig, open_runtime, profile
from autotailor.profiling.networks.validation import input_shape
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.feature_nodes import feature_nodes
from autotailor.profiling.runtimes.onnxruntime import runner as onnxruntime_runner
from features import FEATURES
from returning import Pan

DEVICE = DeviceConfig.from_section({"name": "test", "runtime": "onnxruntime"})
RUNTIME = open_runtime(DEVICE)

KERNELS = {
    "convolution without blocks": (
        "Conv",
        "ReorderOutput",
    ),  # 10 channels: no multiple of 4
    "swish": ("QuickGelu",),
    "biased matmul": ("Reshape", "Gemm", "Reshape"),
}
"""What the optimizer makes of an operator, where that is not one kernel of the same name."""


def kinds_run(model: bytes | str, path: Path, disabled: list[str] | None = None) -> Counter[str]:
    """Kinds of the nodes that a session runs; it writes its optimized model to a path."""
    options = onnxruntime_runner.session_options(RUNTIME.settings())
    options.optimized_model_filepath = str(path)
    onnxruntime_runner.open_session(model, options, disabled)
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def optimized(program: Program, output: str, path: Path) -> Counter[str]:
    """Kinds of the nodes that a session of a replica network runs."""
    model = onnxruntime_runner.read_model(program.param or "", output)
    return kinds_run(model.SerializeToString(), path, onnxruntime_runner.KEEP)


@pytest.mark.parametrize("name", FEATURES)
def test_every_copy_is_one_kernel_and_only_copies_are_added(name: str, tmp_path: Path) -> None:
    feature = FEATURES[name]
    program = RUNTIME.replicas(feature)
    short, long = (optimized(program, output, tmp_path / "model.onnx") for output in (program.short, program.long))
    added = long - short
    copies = program.copies[1] - program.copies[0]
    kernels = Counter(KERNELS.get(name, (feature.kind,)))
    sinks = [kind for kind in ("Conv", "Size") if program.sink and added[kind] - copies * kernels[kind]]
    assert added == Counter({kind: copies * count for kind, count in (kernels + Counter(sinks)).items()})


@pytest.mark.parametrize("name", FEATURES)
def test_a_copy_computes_its_operator(name: str) -> None:
    feature = FEATURES[name]
    model = onnx.parser.parse_model(RUNTIME.replicas(feature).param)
    made = feature_nodes(feature, [f"in{i}" for i in range(len(feature.inputs))], "c1")
    model.graph.output.append(onnx.helper.make_tensor_value_info(made.output, onnx.TensorProto.FLOAT, None))
    model = onnxruntime_runner.read_model(onnx.printer.to_text(model), made.output)
    rng = np.random.default_rng(1)
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer if w.name in made.weights}
    assert {n: w.shape for n, w in weights.items()} == made.weights
    images = {f"in{i}": rng.random(shape, dtype=np.float32) for i, shape in enumerate(feature.inputs)}
    session = onnxruntime_runner.open_session(
        model.SerializeToString(), onnxruntime_runner.session_options(RUNTIME.settings())
    )
    others = {name: image for name, image in images.items() if name != "in0"}
    for packing in (w for w in model.graph.initializer if w.name.endswith(".packing")):
        name = packing.name.removesuffix(".packing")
        others[name] = others[name] * onnx.numpy_helper.to_array(packing).reshape(1, -1, 1, 1)
    shapes = {name: image.shape for name, image in images.items()}
    graph = Graph("one", made.nodes, "in0", (made.output,), shapes, weights | others)
    expected = GraphModule(graph).eval()(torch.from_numpy(images["in0"])).detach().numpy()
    found = session.run(None, images)[0]
    assert found.shape == feature.outputs[0]
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("model", ["resnet_digits", "mobilenet_digits"])
def test_fusion_rules_are_those_of_the_optimizer(model: str, tmp_path: Path) -> None:
    net = autotailor.compile(f"autotailor.zoo:{model}", resolution=32)
    subnet = net.largest()
    net.export_onnx(subnet, tmp_path / "model.onnx")
    options = onnxruntime_runner.session_options(RUNTIME.settings())
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime_runner.open_session(str(tmp_path / "model.onnx"), options)
    nodes = [n for n in onnx.load(tmp_path / "optimized.onnx").graph.node if not n.op_type.startswith("Reorder")]
    features = [f for place in net.places(RUNTIME.fusion) if (f := place.feature(subnet)) is not None]
    assert Counter(n.op_type for n in nodes) == Counter(f.kind for f in features)
    residual = [f for f in features if any(follower.kind == "Add" for follower in f.followers)]
    assert sum(n.op_type == "Conv" and len(n.input) == 4 for n in nodes) == len(residual) > 0
    activations = Counter(f.followers[-1].kind for f in features if f.followers and f.followers[-1].kind != "Add")
    written = (a.s.decode() for n in nodes for a in n.attribute if a.name == "activation")
    assert Counter(written) == activations


def in_place(net: autotailor.SuperNet, subnet: autotailor.SubNet) -> Program:
    program = RUNTIME.in_place("net", net.sequence(subnet, RUNTIME.fusion), input_shape(net, subnet)[1:], ())
    assert program is not None
    return program


def test_a_network_in_place_is_optimized_as_the_exported_one_is(any_net: autotailor.SuperNet, tmp_path: Path) -> None:
    for subnet in (any_net.largest(), any_net.smallest()):
        program = in_place(any_net, subnet)
        written = onnxruntime_runner.read_model(program.param or "", program.long).SerializeToString()
        any_net.export_onnx(subnet, tmp_path / "exported.onnx")
        expected = kinds_run(str(tmp_path / "exported.onnx"), tmp_path / "optimized.onnx")
        assert kinds_run(written, tmp_path / "optimized.onnx") == expected


def test_every_kernel_is_found_again(resnet_net: autotailor.SuperNet) -> None:
    written = in_place(resnet_net, resnet_net.largest())
    program = onnxruntime_runner.load(written.to_manifest(), RUNTIME.settings())
    for _ in range(4):
        program.walk()
    runs = program.walks()
    walks = np.array([[sum(kernels) for kernels in run] for run in runs])
    assert walks.shape == (3, len(written.steps))
    assert (walks >= 0).all()
    counts = [len(kernels) for kernels in runs[0]]
    assert min(counts) == 1
    assert sum(counts) > len(written.steps)  # some change the layout
    assert (np.median(walks, axis=0) > 0).mean() > 0.9  # tiny kernels may take less than a microsecond


def test_all_outputs_of_a_network_are_run(tmp_path: Path) -> None:
    net = autotailor.compile(Pan().eval(), resolution=64)
    written = in_place(net, net.smallest())
    program = onnxruntime_runner.load(written.to_manifest(), RUNTIME.settings())
    for _ in range(2):
        program.walk()
    (run,) = program.walks()
    assert len(run) == len(net.sequence(net.smallest(), RUNTIME.fusion))
    assert all(kernels for kernels in run)


def test_kernels_without_a_step_belong_to_the_next_one() -> None:
    def kernel(name: str, at: int, microseconds: int) -> dict[str, object]:
        return {"cat": "Node", "name": f"{name}_kernel_time", "ts": at, "dur": microseconds}

    run = {"cat": "Session", "name": "model_run", "ts": 0, "dur": 90}
    events = [
        run,
        kernel("s0.1_nchwc", 1, 10),
        kernel("ReorderOutput_token_4", 12, 3),
        kernel("s11.0.inner/MatMulAddFusion", 20, 7),
        kernel("s1.0", 30, 5),
        kernel("ReorderOutput", 40, 2),
    ]
    assert onnxruntime_runner.kernel_times(events, ["s0", "s1", "s11"]) == [[[10000], [5000], [3000, 7000, 2000]]]


def test_operators_are_measured_in_subnets_that_hold_them(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    judged = (resnet_net.largest(), resnet_net.smallest())
    wanted = list(dict.fromkeys(f for s in judged for f in resnet_net.operators(s, RUNTIME.fusion)))
    section = {
        "name": "test",
        "runtime": "onnxruntime",
        "precision_target": 0.5,
        "drift": 10,
        "min_minutes": 0,
        "max_minutes": 2,
    }
    lut = profile(wanted, DeviceConfig.from_section(section), tmp_path, net=resnet_net, avoid=judged)
    known = lut.latencies()
    assert known.keys() >= {feature.id for feature in wanted}
    assert all(0 < known[feature.id] < 5 for feature in wanted)
