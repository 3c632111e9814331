"""Alternatives of blocks that learn where SubNets have them; the network that was given stays."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from autotailor.finetuning import DistilConfig, distil
from autotailor.finetuning.alternatives.branches import parts_of, seen
from autotailor.finetuning.alternatives.own_path import JUDGED, _OnPath, train_on_path
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from distilled import CONFIG, prepared
from tiny_data import splits


@pytest.fixture(scope="module")
def net() -> SuperNet:
    asked = {"shrunk": [0.25], "low_rank": [0.5], "merged": [1]}
    return prepared({"depth": [0], "resolution": [32], "alternatives": asked})


def own_of(net: SuperNet) -> set[str]:
    return set[str]().union(*(part.weights for part in parts_of(net.graph)))


def left_of(net: SuperNet, subnet: SubNet) -> float:
    """What the blocks of a SubNet leave of what they say in the given network, from two graphs of their own."""
    images, targets = seen(splits()), {part.target for part in parts_of(net.graph)}
    said = []
    for each in (net.largest(), subnet):
        graph = net.slice(each)
        values = {graph.input: images}
        with torch.no_grad():
            module = GraphModule(graph).eval()
            module.advance(values, 0, len(module.schedule.nodes), hold=targets)
        said.append({name: values[name].double().numpy() for name in targets if name in values})
    given, found = said
    return float(np.mean([((found[name] - given[name]) ** 2).mean() / given[name].var(ddof=1) for name in found]))


def test_subnets_come_nearer_and_the_given_network_stays(net: SuperNet, tmp_path: Path) -> None:
    result = train_on_path(net, splits(), replace(CONFIG, lr=5e-4), tmp_path)
    assert 0 < result.after < 0.98 * result.before
    changed = {n for n, w in net.graph.weights.items() if not np.array_equal(w, result.net.graph.weights[n])}
    assert changed
    assert changed <= own_of(net)
    random = np.random.default_rng(CONFIG.seed)
    drawn = [_OnPath(net, parts_of(net.graph), "fp32").draw(random) for _ in range(JUDGED)]
    assert np.mean([left_of(result.net, subnet) for subnet in drawn]) == pytest.approx(result.after, rel=1e-3)


def test_errors_are_those_of_the_subnets_own_graphs(net: SuperNet) -> None:
    module, random = _OnPath(net, parts_of(net.graph), "fp32"), np.random.default_rng(0)
    drawn = [module.draw(random) for _ in range(JUDGED)]
    assert any(str(subnet[v.name]).startswith("merged") for subnet in drawn for v in net.space if v.kind == OPERATOR)
    for subnet in drawn:
        assert module.error(seen(splits()), [subnet]) == pytest.approx(left_of(net, subnet), rel=1e-3)


def test_weights_that_came_no_nearer_stay(net: SuperNet, tmp_path: Path) -> None:
    wild = DistilConfig(images=16, batch_size=16, lr=3.0, optimizer="adamw", weight_decay=0.0)
    result = train_on_path(net, splits(), wild, tmp_path)
    assert result.after == result.before
    for name, weight in net.graph.weights.items():
        assert np.array_equal(weight, result.net.graph.weights[name])


def test_alternatives_learn_alone_and_then_in_subnets(net: SuperNet, tmp_path: Path) -> None:
    config, rows, store = replace(CONFIG, images=64, own_path=0.5), list[int](), tmp_path / "store"
    whole = distil(net, splits(), config, tmp_path / "whole", lambda row, epoch: rows.append(epoch), store)
    assert whole.on_path is not None
    assert whole.on_path[1] <= whole.on_path[0]
    assert rows == [row["epoch"] for row in whole.history] == sorted(set(rows))
    alone = distil(net, splits(), replace(config, images=32, own_path=0.0), tmp_path / "alone")
    assert alone.errors == whole.errors
    assert alone.on_path is None
    again = distil(net, splits(), config, tmp_path / "again", store=store)
    assert again.reused == len(parts_of(net.graph))
    assert again.on_path == whole.on_path
    for name, weight in whole.net.graph.weights.items():
        assert np.array_equal(weight, again.net.graph.weights[name])
