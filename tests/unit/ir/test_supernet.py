"""SuperNets: every form of a SubNet computes the same, and what is deduced is what onnxruntime finds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.variable import Modification

TOLERANCE = 1e-4
NCNN_LIKE = FusionRules(
    "ncnn-like",
    folds=frozenset({("Conv", "BatchNormalization")}),
    fuses=frozenset({("Conv", "Relu"), ("Conv", "Clip")}),
    free=frozenset({"Flatten"}),
)


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def some_subnets(net: autotailor.SuperNet, count: int = 8) -> list[autotailor.SubNet]:
    rng = random.Random(1)
    return [net.largest(), net.smallest(), *(net.sample(rng) for _ in range(count))]


def run_all_tensors(model: onnx.ModelProto, x: np.ndarray) -> dict[str, np.ndarray]:
    """Every activation of a model, by onnxruntime without optimisation."""
    names = [name for node in model.graph.node for name in node.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return dict(zip(names, session.run(names, {"input": x}), strict=True))


def test_largest_subnet_is_the_original_network(any_net: autotailor.SuperNet) -> None:
    original = networks.make(any_net.name)
    x = torch.randn(any_net.input_shape)
    with torch.no_grad():
        assert relative(any_net.build(any_net.largest())(x).numpy(), original(x).numpy()) < TOLERANCE


def test_all_forms_of_a_subnet_agree(any_net: autotailor.SuperNet) -> None:
    module = any_net.module().eval()
    for subnet in some_subnets(any_net):
        shapes = any_net.shapes(subnet)
        x = torch.randn(shapes[any_net.graph.input])
        with torch.no_grad():
            elastic = module.activate(subnet)(x).numpy()
            built = any_net.build(subnet)(x).numpy()
        tensors = run_all_tensors(to_onnx(any_net.slice(subnet)), x.numpy())
        assert relative(elastic, built) < TOLERANCE
        assert relative(tensors["output"], built) < TOLERANCE
        for name, tensor in tensors.items():
            if name != "output":
                assert shapes[name] == tensor.shape, name


def test_sorting_channels_leaves_the_largest_as_it_was(any_net: autotailor.SuperNet) -> None:
    sorted_net = any_net.sort_channels()
    x = torch.randn(any_net.input_shape)
    with torch.no_grad():
        before, after = (n.build(n.largest())(x).numpy() for n in (any_net, sorted_net))
    assert relative(after, before) < TOLERANCE
    assert any(order != sorted(order) for order in sorted_net.sorting.values())


def test_sorting_puts_important_channels_first() -> None:
    network = networks.make("resnet")
    with torch.no_grad():
        network.stages[1].main[1].weight[[3, 7]] = 0.0
    net = autotailor.compile(network, networks.SPACES["resnet"], name="resnet", resolution=32)
    order = next(o for name, o in net.sort_channels().sorting.items() if o[-2:] == [3, 7])
    assert len(order) == 16


def test_saving_and_loading_keep_everything(any_net: autotailor.SuperNet, tmp_path: Path) -> None:
    any_net.sort_channels().save(tmp_path / "net.pt")
    loaded = autotailor.load(tmp_path / "net.pt")
    assert loaded.space == any_net.space
    assert loaded.sorting == any_net.sort_channels().sorting
    x = torch.randn(any_net.input_shape)
    with torch.no_grad():
        assert relative(loaded.build(loaded.largest())(x).numpy(), any_net.build(any_net.largest())(x).numpy()) < 1e-4


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(b"no network")
    with pytest.raises(autotailor.AutoTailorError, match=r"net\.pt is no SuperNet"):
        autotailor.load(tmp_path / "net.pt")


def test_statistics_are_collected_and_used(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().train()
    subnet = resnet_net.smallest()
    x = torch.randn(64, *resnet_net.shapes(subnet)[resnet_net.graph.input][1:])
    module.activate(subnet)
    with torch.no_grad():
        by_batch = module(x)
    with module.collecting() as collector:
        module(x)
    statistics = collector.statistics()
    module.eval().statistics = statistics
    with torch.no_grad():
        by_statistics = module(x)
        built = resnet_net.build(subnet, statistics)(x)
    assert relative(by_statistics.numpy(), by_batch.numpy()) < 0.05  # biased against unbiased variance
    assert relative(built.numpy(), by_statistics.numpy()) < TOLERANCE


def test_absorbing_trained_weights(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    x = torch.randn(8, 3, 32, 32)
    module(x).square().sum().backward()
    optimizer.step()
    absorbed = resnet_net.absorb(module)
    with torch.no_grad():
        expected = module.eval()(x).numpy()
        assert relative(absorbed.build(absorbed.largest())(x).numpy(), expected) < TOLERANCE
        assert relative(resnet_net.build(resnet_net.largest())(x).numpy(), expected) > 1e-2


def test_replicas_share_memory_but_no_parameter(resnet_net: autotailor.SuperNet) -> None:
    """A parameter that two threads compute gradients of makes them wait for each other for ever, once in a while."""
    module = resnet_net.module().train()
    twin = module.replica()
    module.to(memory_format=torch.channels_last)  # moves the weights
    twin.look_at(module)
    pairs = list(zip(module.parameters(), twin.parameters(), strict=True))
    assert pairs
    assert all(a is not b and a.data_ptr() == b.data_ptr() and a.requires_grad == b.requires_grad for a, b in pairs)
    twin(torch.randn(4, 3, 32, 32)).sum().backward()
    assert all(a.grad is None for a, _ in pairs)
    assert any(b.grad is not None for _, b in pairs)


def test_gradients_reach_only_active_channels(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().train().activate(resnet_net.smallest())
    module(torch.randn(4, 3, 20, 20)).sum().backward()
    stem = next(p for n, p in module.named_parameters() if p.shape == (16, 3, 3, 3))
    assert stem.grad is not None
    assert (stem.grad[8:] == 0).all()
    assert (stem.grad[:8] != 0).any()


def test_metrics_agree_with_the_built_networks(any_net: autotailor.SuperNet) -> None:
    parameters, macs = any_net.parameters(), any_net.macs()
    for subnet in some_subnets(any_net, 4):
        built = any_net.build(subnet)
        counted = sum(p.numel() for p in built.parameters())
        assert parameters.predict(subnet.to_array())[0] * 1e6 == pytest.approx(counted)
        shapes = any_net.shapes(subnet)
        by_operator = [
            int(np.prod(shapes[n.outputs[0]]))
            * int(
                shapes[n.inputs[0]][-1] if n.kind == "MatMul" else np.prod(built.graph.weights[n.inputs[1]].shape[1:])
            )
            for n in built.graph.nodes
            if n.kind in ("Conv", "Gemm", "MatMul")
        ]
        assert macs.predict(subnet.to_array())[0] * 1e6 == pytest.approx(sum(by_operator))


def test_operators_of_the_space_are_those_of_its_subnets(any_net: autotailor.SuperNet) -> None:
    """Against brute force: operators read off the sliced graphs of all SubNets (or a sample of them)."""
    found = set(any_net.operators(fusion=NCNN_LIKE))
    rng = random.Random(2)
    seen: set[object] = set()
    for _ in range(3000):
        seen.update(any_net.operators(any_net.sample(rng), NCNN_LIKE))
        if seen == found:
            break
    assert seen == found


def test_a_subnets_operators_are_those_of_its_sliced_graph(any_net: autotailor.SuperNet) -> None:
    for subnet in some_subnets(any_net, 4):
        graph = any_net.slice(subnet)
        standalone = autotailor.SuperNet.of(graph, {})
        assert set(any_net.operators(subnet, NCNN_LIKE)) == set(standalone.operators(fusion=NCNN_LIKE))


def test_latency_is_the_sum_over_operators(resnet_net: autotailor.SuperNet) -> None:
    features = resnet_net.operators(fusion=NCNN_LIKE)
    table = {f.id: float(i + 1) for i, f in enumerate(features)}
    metric = resnet_net.latency(table, NCNN_LIKE)
    for subnet in some_subnets(resnet_net, 4):
        graph = autotailor.SuperNet.of(resnet_net.slice(subnet), {})
        expected = sum(table[p.features[()].id] for p in graph.places(NCNN_LIKE))
        assert metric.predict(subnet.to_array())[0] == pytest.approx(expected)
    with pytest.raises(autotailor.AutoTailorError, match="LUT lacks 1 of the"):
        resnet_net.latency({k: v for k, v in table.items() if k != features[0].id}, NCNN_LIKE)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"widths": [0.5]}, "unknown keys"),
        ({"width": [1.5]}, "no more than 1"),
        ({"resolution": [64]}, "between 1 and the network's 32"),
        ({"depth": [-1]}, "count removed blocks"),
        ({"blocks": {"Bottleneck": {"expand_ratio": [2.0]}}}, "holds weights for expand ratio 0.5 at most"),
        ({"blocks": {"Transformer": {}}}, "no block is named or of kind 'Transformer'"),
        ({"blocks": {"Bottleneck": {"heads": [2]}}}, "has no variable"),
    ],
)
def test_spaces_that_cannot_be_are_refused(space: dict[str, object], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


@pytest.mark.parametrize(
    ("choices", "message"),
    [([3, 9], "kernel size 7 at most"), ([4], r"can have kernel size \[3, 5, 7\]"), ([1], r"\[3, 5, 7\]")],
)
def test_kernels_that_cannot_be_are_refused(choices: list[int], message: str) -> None:
    space = {"blocks": {"block3": {"kernel_size": choices}}}
    with pytest.raises(SpaceError, match=message):
        autotailor.compile(networks.make("mobilenet"), space, resolution=32)


def test_a_smaller_kernel_is_the_centre_of_the_larger() -> None:
    net = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    kernels = {v.name: v.choices for v in net.space if v.kind == "kernel_size"}
    assert kernels == {"block1.kernel_size": (3, 5), "block3.kernel_size": (3, 5, 7)}
    sliced = net.slice(net.largest().transform(Modification("block3.kernel_size", 5)))
    node = next(
        n for n in sliced.nodes if n.kind == "Conv" and n.get("kernel_shape") == (5, 5) and n.get("group") == 96
    )
    assert node.get("pads") == (2, 2, 2, 2)
    assert np.array_equal(sliced.weights[node.inputs[1]], net.graph.weights[node.inputs[1]][..., 1:6, 1:6])


def test_a_space_is_proposed() -> None:
    net = autotailor.compile(networks.make("mobilenet"), resolution=32)
    assert net.space["block1.kernel_size"].choices == (3, 5)
    assert net.space["block3.kernel_size"].choices == (3, 5, 7)
    assert len(net.space["block2.expand_ratio"].choices) == 3


def test_choices_that_rounding_makes_equal_are_merged() -> None:
    net = autotailor.compile(networks.make("resnet"), {"divisor": 8, "width": [0.5, 0.52, 1.0]}, resolution=32)
    assert net.space["stem.width"].choices == (0.52, 1.0) or net.space["stem.width"].choices == (0.5, 1.0)
    assert any(name == "stem.width" for name, _, _ in net.space.merged)


def test_skipped_variables_are_left_out() -> None:
    space = {**networks.SPACES["resnet"], "skip": ["stage1.*", "stem.width"]}
    names = [v.name for v in autotailor.compile(networks.make("resnet"), space, resolution=32).space]
    assert "stem.width" not in names
    assert not any(name.startswith("stage1") for name in names)


def test_variables_know_their_owner(any_net: autotailor.SuperNet) -> None:
    owners = {"", "stem", "head", *(s.name for s in any_net.stages), *(b.name for b in any_net.blocks)}
    for variable in any_net.space:
        assert variable.owner in owners
        assert variable.name == f"{variable.owner}.{variable.kind}".lstrip(".")
        assert any_net.space.find(variable.owner, variable.kind) is variable
