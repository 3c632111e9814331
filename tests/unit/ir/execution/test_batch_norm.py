"""A BatchNorm that is put back changes nothing, neither as a placeholder nor with statistics."""

import numpy as np
import pytest
import torch

from autotailor.ir.execution.batch_norm import adopt, biased_convolutions, placeholders, reinsert
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from onnx_text import HEAD
from text_graphs import graph_of

BODY = f"a = Conv (x, k, b)  r = Relu (a)  s = Conv (r, l, c)  t = Add (s, a)  {HEAD}"
IMAGES = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 3, 8, 8)).astype(np.float32))


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(BODY, k=(4, 3, 3, 3), b=(4,), l=(4, 4, 1, 1), c=(4,), fc=(5, 4))


def run(graph: Graph, training: bool = False) -> torch.Tensor:
    with torch.no_grad():
        return GraphModule(graph).train(training)(IMAGES)


def test_placeholders_are_the_identity_behind_what_they_were_folded_into(graph: Graph) -> None:
    put_back = reinsert(graph, {"a", "s"})
    assert [node.kind for node in put_back.nodes][:4] == ["Conv", "BatchNormalization", "Relu", "Conv"]
    assert len(placeholders(put_back)) == 2
    torch.testing.assert_close(run(put_back), run(graph))
    assert placeholders(graph) == ()


def test_statistics_of_the_inputs_keep_the_identity_and_make_it_that_of_training(graph: Graph) -> None:
    put_back = reinsert(graph, {"a"})
    (node,) = placeholders(put_back)
    with torch.no_grad():
        weight, bias = (torch.from_numpy(graph.weights[name].copy()) for name in graph.nodes[0].inputs[1:])
        convolved = torch.nn.functional.conv2d(IMAGES, weight, bias)
    variance, mean = torch.var_mean(convolved, (0, 2, 3), correction=0)
    adopted = adopt(put_back, {node.name: (mean.numpy(), variance.numpy())})
    assert placeholders(adopted) == ()
    torch.testing.assert_close(run(adopted), run(graph), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(run(adopted, training=True), run(graph), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(run(put_back, training=True), run(graph), rtol=1e-2, atol=1e-2)


def test_channels_that_say_next_to_nothing_keep_their_small_weights_beside_their_bias(graph: Graph) -> None:
    """Weights of 1e-7 beside a bias of 1 would be weights of 1 beside a bias of a million, which float32 cannot add."""
    k, b = (graph.weights[name].copy() for name in graph.nodes[0].inputs[1:])
    k[2] *= 1e-7
    b[2] = 1.0
    dead = graph.with_weights(dict(zip(graph.nodes[0].inputs[1:], (k, b), strict=True)))
    put_back = reinsert(dead, {"a"})
    (node,) = placeholders(put_back)
    with torch.no_grad():
        exact = torch.nn.functional.conv2d(IMAGES.double(), torch.from_numpy(k).double(), torch.from_numpy(b).double())
    variance, mean = torch.var_mean(exact, (0, 2, 3), correction=0)
    adopted = adopt(put_back, {node.name: (mean.numpy(), variance.numpy())}, every=True)
    torch.testing.assert_close(run(adopted), run(dead), rtol=1e-4, atol=1e-4)
    weight, bias = (adopted.weights[name] for name in graph.nodes[0].inputs[1:])
    np.testing.assert_allclose(np.square(weight).reshape(4, -1).sum(axis=1), 1.0, rtol=1e-5)
    assert not bias.any()
    convolved = torch.nn.functional.conv2d(IMAGES, torch.from_numpy(weight), torch.from_numpy(bias)).double()
    said, expected = (each - each.mean((0, 2, 3), keepdim=True) for each in (convolved, exact))
    scale = torch.from_numpy(np.sqrt(np.square(k.astype(np.float64)).reshape(4, -1).sum(axis=1)))[:, None, None]
    torch.testing.assert_close(said * scale, expected, rtol=1e-4, atol=1e-12)


def test_convolutions_with_a_bias_and_without_a_normalisation_could_have_been_folded() -> None:
    graph = graph_of(
        "a = Conv (x, k, b)  n = BatchNormalization (a, g, h, m, v)  d = Conv (n, l, c)  e = Conv (d, o)"
        f"  q = GlobalAveragePool (e)  w = Conv (q, l, i)  t = Mul (e, w)  {HEAD}",
        k=(4, 3, 3, 3), b=(4,), g=(4,), h=(4,), m=(4,), v=np.ones(4, np.float32),
        l=(4, 4, 1, 1), c=(4,), o=(4, 4, 1, 1), i=(4,), fc=(5, 4),
    )  # fmt: skip
    assert biased_convolutions(graph) == {"d"}
