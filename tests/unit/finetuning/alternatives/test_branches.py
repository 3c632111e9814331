"""Alternatives of blocks learn what their blocks say, each alone; the network that was given stays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autotailor.finetuning import DistilConfig, DistilResult, TrainingError, distil
from autotailor.finetuning.alternatives.branches import Learnt, parts_of
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from distilled import CONFIG, prepared
from tiny_data import splits

SPACE: Mapping[str, Any] = {
    "depth": [0],
    "resolution": [32],
    "alternatives": {"shrunk": [0.5], "ghost": [2], "low_rank": [0.5], "merged": [1]},
}


@pytest.fixture(scope="module")
def net() -> SuperNet:
    return prepared(SPACE)


@pytest.fixture(scope="module")
def result(net: SuperNet, tmp_path_factory: pytest.TempPathFactory) -> DistilResult:
    return distil(net, splits(), CONFIG, tmp_path_factory.mktemp("work"))


def error_of(net: SuperNet, choice: str) -> float:
    """The mean error of a choice on the validation set, computed from whole graphs that are cut at the ends."""
    images, found = splits().validation.images, []  # type: ignore[attr-defined]
    for part in parts_of(net.graph):
        if part.choice == choice:
            target, said = (_tensor(net, name, images) for name in (part.target, part.output))
            found.append(((said - target) ** 2).mean() / target.var(ddof=1))
    return float(np.mean(found))


@torch.no_grad()
def _tensor(net: SuperNet, name: str, images: torch.Tensor) -> Any:
    values = {net.graph.input: images}
    GraphModule(net.graph).eval().advance(values, 0, len(net.graph.nodes), hold={name})
    return values[name].double().numpy()


def test_errors_fall_and_are_those_of_the_graph(net: SuperNet, result: DistilResult) -> None:
    assert set(result.errors) == {"shrunk:0.5", "ghost:2", "merged:1"}
    for choice, (before, after) in result.errors.items():
        assert after < 0.95 * before
        assert before == pytest.approx(error_of(net, choice), rel=1e-3)
        if not result.kept:
            assert after == pytest.approx(error_of(result.net, choice), rel=1e-3)


def test_only_weights_of_trained_branches_change(net: SuperNet, result: DistilResult) -> None:
    own = set().union(*(part.weights for part in parts_of(net.graph)))
    changed = {
        name for name, weight in net.graph.weights.items() if not np.array_equal(weight, result.net.graph.weights[name])
    }
    assert changed
    assert changed <= own
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    ranks = {v.name: "low_rank:0.5" for v in net.space if v.kind == OPERATOR and "low_rank:0.5" in v.choices}
    assert ranks
    low = SubNet.from_assignment(net.space, ranks)
    for subnet in (net.largest(), low):
        before, after = (each.build(subnet).eval()(images) for each in (net, result.net))
        assert torch.equal(before, after)


def test_an_interrupted_training_ends_in_the_same_bits(net: SuperNet, result: DistilResult, tmp_path: Path) -> None:
    config = replace(CONFIG, checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        distil(net, splits(fail_at=(FIRST_EPOCH + 1, 1)), config, tmp_path)
    again = distil(net, splits(), config, tmp_path)
    assert again.errors == result.errors
    for name, weight in result.net.graph.weights.items():
        assert np.array_equal(weight, again.net.graph.weights[name])


def test_one_more_alternative_trains_that_one_alone(net: SuperNet, tmp_path: Path) -> None:
    config = replace(CONFIG, images=32)

    def trained(names: Sequence[str], work: str) -> tuple[DistilResult, list[int]]:
        taken, rows = dict(SPACE, alternatives={name: SPACE["alternatives"][name] for name in names}), list[int]()
        found = distil(prepared(taken), splits(), config, tmp_path / work, lambda row, epoch: rows.append(epoch), store)
        return found, rows

    store, result = tmp_path / "branches", distil(net, splits(), config, tmp_path / "all")
    few, rows = trained(["shrunk", "merged"], "one")
    assert few.reused == 0
    assert rows
    assert len(list(store.iterdir())) == len(parts_of(few.net.graph))
    more, _ = trained(["shrunk", "ghost", "merged"], "two")
    assert more.reused == len(parts_of(few.net.graph))
    assert more.errors == result.errors
    again, rows = trained(["shrunk", "ghost", "merged"], "three")
    assert again.reused == len(parts_of(net.graph))
    assert rows == []
    for name in set().union(*(part.weights for part in parts_of(net.graph))):
        assert np.array_equal(result.net.graph.weights[name], more.net.graph.weights[name])
        assert np.array_equal(result.net.graph.weights[name], again.net.graph.weights[name])
    damaged = next(store.iterdir())
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert trained(["shrunk", "ghost", "merged"], "four")[0].reused == again.reused - 1
    other = distil(net, splits(), replace(config, lr=1e-3), tmp_path / "five", store=store)
    assert other.reused == 0


def test_a_branch_that_became_worse_keeps_its_beginning(net: SuperNet, tmp_path: Path) -> None:
    wild = DistilConfig(images=16, batch_size=16, lr=3.0, optimizer="adamw", weight_decay=0.0, own_path=0.0)
    found = distil(net, splits(), wild, tmp_path)
    assert found.kept == len(parts_of(net.graph))
    for name, weight in net.graph.weights.items():
        assert np.array_equal(weight, found.net.graph.weights[name])


@pytest.mark.parametrize(("after", "better"), [(0.1, True), (0.2, False), (0.3, False), (float("nan"), False)])
def test_only_an_error_that_fell_is_better(after: float, better: bool) -> None:
    assert Learnt({}, 0.2, after).is_better is better


def test_without_images_alternatives_stay_in_closed_form(net: SuperNet, tmp_path: Path) -> None:
    found = distil(net, splits(), DistilConfig(images=0), tmp_path)
    assert found.net is net
    assert found.errors == {}


def test_a_loss_that_is_no_number_is_an_error(net: SuperNet, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="distil"):
        distil(net, splits(), DistilConfig(images=64, batch_size=16, lr=1e30, optimizer="sgd"), tmp_path)
