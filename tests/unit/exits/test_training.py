from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from autotailor.data.splits import Batch, TensorEvaluationSet
from autotailor.exits.asking import ask
from autotailor.exits.config import ExitsConfig
from autotailor.exits.heads import find_exits, with_exits
from autotailor.exits.training import Head, train_heads
from autotailor.finetuning.config import DistillationConfig
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.supernet import SuperNet
from tiny_data import TinyStream, splits

COLOURS = torch.tensor([[1.0, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, 1, -1], [-1, 1, 1]])


def coloured(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise in a colour for each class, which a head finds in the mean over the positions."""
    labels = torch.arange(count) % len(COLOURS)
    noise = torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(seed))
    return noise + 3 * COLOURS[labels][:, :, None, None], labels


class Coloured(TinyStream):
    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        images, labels = coloured(len(self), epoch)
        for number in range(start, self.num_batches(batch_size)):
            part = slice(number * batch_size, (number + 1) * batch_size)
            yield images[part], labels[part]


def test_heads_learn_and_the_network_stays_as_it_is(net: SuperNet, tmp_path: Path) -> None:
    held = TensorEvaluationSet(*coloured(60, 1), np.arange(60))
    data = replace(splits(), train=Coloured(160), validation=held, test=held)
    polish = PolishConfig(batch_size=32, distillation=DistillationConfig(weight=0.0))  # labels alone teach
    subnet = net.largest()
    graph = net.slice(subnet)
    last = next(node for node in graph.nodes if node.kind == "Gemm")
    graph = graph.with_weights({name: 0.01 * graph.weights[name] for name in last.inputs[1:]})  # it is sure of nothing
    found = {}
    for kind, lr in (("probe", 0.05), ("full", 0.005)):
        places = find_exits(net, subnet, graph, ("stage1",), kind)
        for images in (0, 960):
            config = ExitsConfig(after=("stage1",), head=kind, images=images, lr=lr)
            heads = train_heads(graph, places, data, config, polish, tmp_path / f"{kind}{images}")
            network = with_exits(graph, places, heads)
            found[kind, images] = ask(network, data.validation, "probability").right.mean(axis=0)
    x = next(iter(data.test.batches(4)))[0]
    with torch.no_grad():
        assert torch.equal(GraphModule(network).eval()(x)[-1], GraphModule(graph).eval()(x))
    for kind in ("probe", "full"):
        assert found[kind, 960][0] > 0.8 > 0.5 > found[kind, 0][0]
        assert found[kind, 960][1] == found[kind, 0][1]


def test_the_scales_of_a_head_are_in_its_exported_weights(net: SuperNet) -> None:
    graph = net.slice(net.largest())
    (place,) = find_exits(net, net.largest(), graph, ("stage1",), "full")
    head = Head(place, "full", 5, 0).eval()
    x = 100 * torch.rand(8, *place.shape[1:])
    head.measure(x)
    head.solve(head.pooled(x), torch.randn(8, 5))
    arrays = {name: torch.from_numpy(value) for name, value in head.arrays().items()}
    maps = torch.nn.functional.conv2d(x, arrays["kernel"], arrays["shift"], stride=2, padding=1).relu()
    answer = maps.mean(dim=(2, 3)) @ arrays["weight"].T + arrays["bias"]
    np.testing.assert_allclose(answer.numpy(), head(x).detach().numpy(), rtol=1e-3, atol=1e-3)
