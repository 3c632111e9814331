"""What each method trains, and with how many images."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
import torch
from controls import speed
from controls.budgets import Contest
from controls.methods import Methods
from controls.slicing import flops
from controls.start import Start, begin

from autotailor.accuracy.calibration import resolution_of
from autotailor.finetuning import DistillationConfig
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet, sample_distinct

SEEN = 96 + 144 + 2 * 48
"""Images of pretraining, of the SuperNet, and of two epochs of polishing."""


@pytest.fixture
def contest(run: Any) -> Contest:
    subnets = sample_distinct(run.net.space, 3, np.random.default_rng(0))
    return Contest(subnets, {subnet.id: 10.0 * k for k, subnet in enumerate(subnets)})


def test_the_inherited_subnet_is_the_most_accurate_one(run: Any, contest: Contest) -> None:
    outcome = Methods(run).inherited(contest)
    assert SubNet.from_assignment(run.net.space, json.loads(outcome.what)) == contest.subnets[2]
    assert (outcome.validation, outcome.images, outcome.passes) == (20.0, 0, 0)
    assert len(outcome.right) == len(run.data.test)


def test_the_share_of_operations_is_that_of_the_macs(run: Any) -> None:
    small = run.net.smallest()
    assert resolution_of(small) < run.data.resolution
    outcome = Methods(run).inherited(Contest([small], {small.id: 1.0}))
    least, whole = run.net.macs().predict([small.to_array(), run.net.largest().to_array()])
    assert outcome.macs == pytest.approx(least / whole, rel=1e-6)


def test_polishing_counts_the_images_of_those_that_lose(run: Any, contest: Contest, tmp_path: Path) -> None:
    low = Contest(contest.subnets, dict.fromkeys(contest.accuracies, -1.0))
    outcome = Methods(run).polished(low, Start(run.net, low.accuracies), 4e-3, tmp_path)
    assert (outcome.images, outcome.passes) == (2 * 48, (2 + 1) * 48)
    assert outcome.validation >= 0.0


def test_polishing_that_does_not_help_leaves_the_inherited_weights(run: Any, contest: Contest, tmp_path: Path) -> None:
    high = Contest(contest.subnets, dict.fromkeys(contest.accuracies, 101.0))
    outcome = Methods(run).polished(high, Start(run.net, high.accuracies), 4e-3, tmp_path)
    inherited = Methods(run).inherited(high)
    assert np.array_equal(outcome.right, inherited.right)
    assert (outcome.images, outcome.passes) == (0, (2 + 1) * 48)


def test_a_joint_training_serves_the_best_candidates_of_all_budgets(run: Any, contest: Contest, tmp_path: Path) -> None:
    """Its images count once, and only SubNets that it has trained take part in a race."""
    assert begin(run, {50: contest}).accuracies == contest.accuracies
    run.joint = replace(run.finetune, epochs=12, lr=2e-2, distillation=DistillationConfig(weight=0.0), sort=False)
    start = begin(run, {50: contest, 80: Contest(contest.subnets[:1], contest.accuracies)})
    assert start.images == 12 * 48
    assert set(start.accuracies) == {subnet.id for subnet in contest.subnets}
    few = begin(run, {50: Contest(contest.subnets[:2], contest.accuracies)})
    outcome = Methods(run).polished(contest, few, 4e-3, tmp_path)
    assert outcome.what in [json.dumps(subnet.assignment) for subnet in contest.subnets[:2]]
    assert outcome.images in (0, (12 + 2) * 48)


@pytest.mark.parametrize("method", ["alone", "scaled", "sliced"])
def test_networks_of_a_budget_see_as_many_images_as_a_polished_subnet(
    run: Any, contest: Contest, tmp_path: Path, method: str
) -> None:
    methods = Methods(run)
    polished = methods.inherited(contest)
    control = getattr(methods, method)(polished)
    outcome = methods.train(control, control.lr, tmp_path)
    assert outcome.images + (run.pretrain_images if method == "sliced" else 0) == SEEN
    assert polished.macs <= outcome.macs + 1e-9 <= 1.4 * polished.macs
    assert len(outcome.right) == len(run.data.test)


def test_the_same_architecture_starts_from_other_weights(run: Any, contest: Contest) -> None:
    module = Methods(run).alone(Methods(run).inherited(contest)).factory()
    inherited = run.net.slice(contest.best).weights
    arrays = module.arrays()
    assert {name: weight.shape for name, weight in arrays.items()} == {n: w.shape for n, w in inherited.items()}
    drawn = [name for name, weight in inherited.items() if weight.ndim == 4]
    assert drawn
    assert not any(np.array_equal(arrays[name], inherited[name]) for name in drawn)


def test_the_original_trains_on_with_other_epochs_for_as_long_as_the_supernet(run: Any, tmp_path: Path) -> None:
    control = Methods(run).trained_on()
    outcome = Methods(run).train(control, control.lr, tmp_path)
    assert (outcome.images, control.later) == (run.finetune_images, True)
    assert torch.equal(control.factory().state_dict()["head.2.weight"], run.original().state_dict()["head.2.weight"])


def test_the_original_is_what_shares_are_of(run: Any) -> None:
    outcome = Methods(run).original()
    assert (outcome.macs, outcome.latency, outcome.images) == (1.0, 1.0, 0)


@pytest.mark.parametrize("method", ["scaled_as_fast", "sliced_as_fast"])
def test_a_network_that_is_as_fast_is_matched_by_measured_latency(
    run: Any, contest: Contest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(speed, "WIDTHS", (0.25, 0.5, 1.0))
    monkeypatch.setattr(speed, "measured", lambda graphs, device, folder: {n: cost_of(g) for n, g in graphs.items()})
    methods = Methods(run)
    subnet = run.net.largest()
    control = getattr(methods, method)(methods.inherited(Contest([subnet], {subnet.id: 1.0})), tmp_path)
    assert control.match == speed.Match(1.0, pytest.approx(1.0), pytest.approx(1.0))
    outcome = methods.train(control, control.lr, tmp_path / "training")
    assert (outcome.what, outcome.latency, outcome.polished) == ("width 1", pytest.approx(1.0), pytest.approx(1.0))
    brief = getattr(methods, method.replace("as_fast", "briefly"))
    assert brief(methods.inherited(Contest([subnet], {subnet.id: 1.0})), tmp_path) == replace(
        control, images=2 * 48, factory=ANY
    )
    small = run.net.smallest()
    faster = getattr(methods, method)(methods.inherited(Contest([small], {small.id: 1.0})), tmp_path / "small")
    assert faster.match.width < 1.0
    assert faster.match.polished < 1.0


def cost_of(graph: Graph) -> float:
    """Stands for a latency: operations of the graph."""
    return float(flops(GraphModule(graph), graph.shapes[graph.input][-1]))
