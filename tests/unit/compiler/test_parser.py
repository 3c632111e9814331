"""Normalised ONNX becomes a graph: names, weights, attributes, and the row of logits."""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import autotailor
from autotailor.compiler.parser import generalise, parse
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from onnx_text import HEAD, KERNEL, Array, model_of, read
from reference import assert_reads
from text_graphs import graph_of

FC = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
WEIGHTS = {"kernel": KERNEL, "fc": FC}

LAST = 2**63 - 1
GRAPHS: dict[str, Callable[[], Graph]] = {
    "reshape": lambda: graph_of(
        "r = Reshape (x, rows)  b = Transpose <perm = [0, 2, 1]> (r)  m = MatMul (b, w)"
        f"  c = Transpose <perm = [0, 2, 1]> (m)  t = Reshape (c, image)  {HEAD}",
        rows=[1, 3, 64], w=(3, 4), image=[1, 4, 8, 8], fc=(5, 4),
    ),
    "slice": lambda: graph_of(
        f"a = Conv (x, k)  t = Slice (a, starts, ends, axes)  {HEAD}",
        k=(6, 3, 1, 1), starts=[2, 0], ends=[6, LAST], axes=[1, 2], fc=(5, 4),
    ),
    "split": lambda: graph_of(
        f"a = Conv (x, k)  l, r = Split <axis = 1, num_outputs = 2> (a)  t = Mul (l, r)  {HEAD}",
        k=(8, 3, 1, 1), fc=(5, 4),
    ),
    "gather": lambda: graph_of(
        f"a = Conv (x, k)  t = Gather <axis = -3> (a, indices)  {HEAD}",
        k=(8, 3, 1, 1), indices=[-1, 0, -8, 3], fc=(5, 4),
    ),
    "expand": lambda: graph_of(
        f"a = Conv (x, k)  m = GlobalMaxPool (a)  t = Expand (m, image)  {HEAD}",
        k=(4, 3, 1, 1), image=[1, 4, 3, 3], fc=(5, 4),
    ),
}  # fmt: skip


def parsed(body: str, weights: dict[str, Array] | None = None, outputs: str = "float[1, 5] y") -> Graph:
    """The graph of a model, straight from its text."""
    return parse(read(model_of(body, {**WEIGHTS, **(weights or {})}, outputs=outputs)), "g")


def test_nodes_without_a_name_get_one_each() -> None:
    graph = parsed(f"c = Conv (x, kernel)  a = Relu (c)  t = Relu (a)  {HEAD}")
    assert [node.name for node in graph.nodes][:3] == ["Conv_0", "Relu_1", "Relu_2"]


def test_nodes_of_one_name_become_two() -> None:
    model = read(model_of(f"c = Conv (x, kernel)  a = Relu (c)  t = Relu (a)  {HEAD}", WEIGHTS))
    for node in list(model.graph)[1:3]:
        node.name = "act"
    assert [node.name for node in parse(model, "g").nodes][1:3] == ["act", "act.2"]
    model.graph[0].name = "act.2"
    assert [node.name for node in parse(model, "g").nodes][:3] == ["act.2", "act", "act.3"]


@pytest.mark.parametrize("name", ["input", "output"])
def test_a_tensor_inside_does_not_take_the_name_of_an_exported_one(name: str) -> None:
    graph = parsed(f"c = Conv (x, kernel)  {name} = Relu (c)  t = Neg ({name})  {HEAD}")
    assert graph.nodes[1].outputs == (f"{name}.inner",)
    assert graph.nodes[2].inputs == (f"{name}.inner",)


def test_the_image_and_the_logits_may_have_those_names() -> None:
    body = HEAD.replace("y =", "output =")
    model = model_of(
        f"t = Conv (input, kernel)  {body}", WEIGHTS, inputs="float[1, 3, 8, 8] input", outputs="float[n, c] output"
    )
    graph = assert_reads(model)
    assert (graph.input, graph.output) == ("input", "output")


def test_constant_vectors_that_a_rule_asks_for_become_attributes() -> None:
    graph = parsed(f"c = Conv (x, kernel)  t = ReduceMean (c, axes)  {HEAD}", {"axes": np.array([3])})
    assert graph.nodes[1].get("axes") == (3,)
    assert graph.nodes[1].inputs == ("c",)


def test_constant_numbers_become_attributes_too() -> None:
    graph = parsed(f"c = Conv (x, kernel)  t = Clip (c, low)  {HEAD}", {"low": np.float32(0.5)})
    assert graph.nodes[1].get("min") == 0.5


def test_no_numbers_stand_for_an_absent_input() -> None:
    sizes, none = np.array([1, 4, 3, 3]), np.zeros(0, np.float32)
    graph = parsed(f"c = Conv (x, kernel)  t = Resize (c, none, none, sizes)  {HEAD}", {"sizes": sizes, "none": none})
    assert graph.nodes[1].get("scales") is None
    assert graph.nodes[1].get("sizes") == (1, 4, 3, 3)


def test_vectors_of_two_nodes_are_copied_and_matrices_stay_shared() -> None:
    bias = np.ones(4, np.float32)
    graph = parsed(f"a = Conv (x, kernel, b)  c = Conv (x, kernel, b)  t = Add (a, c)  {HEAD}", {"b": bias})
    first, second = graph.nodes[:2]
    assert first.inputs[1] == second.inputs[1] == "kernel"
    assert first.inputs[2] != second.inputs[2]
    assert all(np.array_equal(graph.weights[node.inputs[2]], bias) for node in (first, second))


def test_a_copy_does_not_take_the_name_of_another_vector() -> None:
    """The node `gains` reads a copy of `shared` in its slot 1, and another vector is called `gains.1`."""
    weights = {"kernel": KERNEL, "fc": FC, "shared": [1.0, 2.0, 3.0, 4.0], "gains.1": [-4.0, 3.0, -2.0, 1.0]}
    body = "c = Conv (x, kernel)  h = Transpose <perm = [0, 2, 3, 1]> (c)  m = Mul (h, shared)  a = Add (m, shared)"
    model = model_of(f"{body}  l = Add (a, other)  t = Transpose <perm = [0, 3, 1, 2]> (l)  {HEAD}", weights)
    model.graph.node[2].name, model.graph.node[4].input[1] = "gains", "gains.1"
    assert_reads(model)


def test_weights_do_not_share_memory_with_the_file() -> None:
    model = read(model_of(f"t = Conv (x, kernel)  {HEAD}", WEIGHTS))
    graph = parse(model, "g")
    graph.weights["kernel"][:] = 0
    tensor = model.graph.initializers["kernel"].const_value
    assert tensor is not None
    assert tensor.numpy().any()


def test_outputs_that_nobody_reads_are_dropped_where_they_are_optional() -> None:
    graph = parsed(f"t, indices = MaxPool <kernel_shape = [2, 2]> (x)  {HEAD}", {"fc": FC[:, :3]})
    assert graph.nodes[0].outputs == ("t",)


def test_every_part_of_a_split_stays() -> None:
    """The sizes of all parts add up to the axis, whichever of them are read."""
    body = f"c = Conv (x, kernel)  a, t, b = Split <axis = 1> (c, sizes)  {HEAD}"
    weights = {"kernel": KERNEL, "sizes": [1, 2, 1], "fc": FC[:, :2]}
    split = assert_reads(model_of(body, weights)).nodes[1]
    assert split.outputs == ("a", "t", "b")
    assert autotailor.compile(model_of(body, weights)).num_classes == 5


def test_an_output_that_onnx_requires_stays_unread() -> None:
    body = f"c = Conv (x, kernel)  t, indices = TopK <axis = 1> (c, k)  {HEAD}"
    assert parsed(body, {"k": np.array([4])}).nodes[1].outputs == ("t", "indices")


@pytest.mark.parametrize(
    ("body", "shape", "message"),
    [
        ("t = Neg (fc)  y = Relu (t)", "5, 4", "its output y does not depend on the image"),
        (
            "p = GlobalAveragePool (x)  y = Squeeze (p, axes)",
            "3",
            r"its output y for one image is .*, not \[3\]; the axis of the batch is lost: write flatten\(1\)",
        ),
    ],
    ids=["a constant", "a vector"],
)
def test_an_output_that_is_none_of_the_image_is_refused(body: str, shape: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        parsed(body, {"axes": np.array([0, 2, 3])}, f"float[{shape}] y")


def test_maps_and_several_outputs_stay_as_they_are() -> None:
    graph = parsed("y = Conv (x, kernel)  z = GlobalAveragePool (y)", {}, "float[1, 4, 6, 6] y, float[1, 4, 1, 1] z")
    assert {name: graph.shapes[name] for name in graph.outputs} == {"y": (1, 4, 6, 6), "z": (1, 4, 1, 1)}
    assert [node.kind for node in graph.nodes] == ["Conv", "GlobalAveragePool"]


@pytest.mark.parametrize("name", ["x", "fc"])
def test_an_output_that_no_node_writes_is_refused(name: str) -> None:
    model = read(model_of("y = Relu (x)", WEIGHTS))
    model.graph.outputs[0] = model.graph.inputs[0] if name == "x" else model.graph.initializers["fc"]
    with pytest.raises(GraphError, match=f"its output {name} does not depend on the image"):
        parse(model, "g")


def test_an_attribute_that_is_a_graph_is_refused() -> None:
    branches = "<then_branch = a () => (p) { p = Relu (x) }, else_branch = b () => (q) { q = Neg (x) }>"
    with pytest.raises(GraphError, match="node If_2: attribute then_branch holds"):
        parsed(f"m = ReduceMax <keepdims = 0> (x)  c = Cast <to = 9> (m)  t = If (c) {branches}  {HEAD}")


def test_a_shape_that_nobody_inferred_is_refused() -> None:
    model = ir.from_proto(model_of(f"t = Conv (x, kernel)  {HEAD}", WEIGHTS))
    with pytest.raises(GraphError, match="tensor t: its shape could not be inferred"):
        parse(model, "g")


def test_logits_with_axes_of_one_become_rows() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 5, 1), nn.AdaptiveAvgPool2d(1)
    ).eval()
    net = autotailor.compile(network, resolution=32)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x).flatten(1))
    assert net.num_classes == 5
    assert net.shapes(net.smallest())[net.graph.output] == (1, 5)
    assert net.names == ("input", "output"), "the rows have the name of the output"


def run(graph: Graph, images: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return GraphModule(graph).eval()(images)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_batch_is_its_images_one_by_one(name: str) -> None:
    graph = GRAPHS[name]()
    images = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype(np.float32))
    alone = torch.cat([run(generalise(graph), image[None]) for image in images])
    torch.testing.assert_close(run(generalise(graph), images), alone)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_second_run_changes_nothing(name: str) -> None:
    once = generalise(GRAPHS[name]())
    assert generalise(once).nodes == once.nodes


def test_bounds_at_the_end_of_an_axis_are_counted_from_there() -> None:
    node = next(node for node in generalise(GRAPHS["slice"]()).nodes if node.kind == "Slice")
    assert dict(zip(node.get("axes"), node.get("starts"), strict=True))[1] == -4
    assert min(node.get("ends")) > 8
