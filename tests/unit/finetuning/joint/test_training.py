"""Training of a few SubNets together, which keep sharing their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
import tiny_data
from autotailor.accuracy import Calibrator, evaluate
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, FinetuneResult
from autotailor.finetuning.errors import DivergenceError
from autotailor.finetuning.joint import JointResult, train_jointly, training
from autotailor.finetuning.joint.training import Listed
from autotailor.ir.space.subnet import SubNet, sample_distinct
from training import equal, weights


@pytest.fixture(scope="module")
def members(plain_net: autotailor.SuperNet) -> tuple[SubNet, ...]:
    (other,) = sample_distinct(plain_net.space, 1, np.random.default_rng(3))
    return plain_net.smallest(), other


@pytest.fixture
def config(finetune_config: FinetuneConfig) -> FinetuneConfig:
    return replace(finetune_config, epochs=6, lr=2e-3, sort=False, checkpoint_seconds=0.0)


def trained(
    net: FinetuneResult,
    original: autotailor.SuperNet,
    members: Sequence[SubNet],
    config: FinetuneConfig,
    folder: Path,
    data: DataSplits,
) -> JointResult:
    return train_jointly(net.net, original, data, members, config, folder)


def test_members_gain_and_share_the_weights_of_one_network(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> None:
    """What the result says of the members is what its network computes."""
    result = trained(finetuned, plain_net, members, config, tmp_path, tiny)
    assert result.gain > 0
    assert not equal(weights(result.net), weights(finetuned.net))
    assert result.images == 48 * config.epochs
    assert [row["panel_accuracy"] for row in result.history if "panel_accuracy" in row]
    calibrator, module = Calibrator(tiny, config.calibration), result.net.module().eval()
    for subnet in members:
        found = evaluate(module, subnet, tiny.validation, calibrator.statistics(module, subnet))
        assert 100 * found.right.mean() == pytest.approx(result.after[subnet.id])
    assert set(result.before) == set(result.after) == {subnet.id for subnet in members}
    document = result.document()
    assert document["is_better"]
    assert document["accuracy_validation"][members[0].id]["after"] == result.after[members[0].id]
    assert "of 2 members on the validation set" in result.said("accuracy")


def test_only_members_and_the_largest_subnet_are_trained(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: set[SubNet] = set()
    draw = Listed.draw

    def noted(self: Listed, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        found = draw(self, progress, random)
        drawn.update(found)
        return found

    monkeypatch.setattr(Listed, "draw", noted)
    trained(finetuned, plain_net, members, config, tmp_path, tiny)
    assert drawn == {plain_net.largest(), *members}


def test_an_interrupted_training_ends_in_the_same_bits(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> None:
    whole = trained(finetuned, plain_net, members, config, tmp_path / "whole", tiny)
    with pytest.raises(KeyboardInterrupt):
        trained(finetuned, plain_net, members, config, tmp_path / "killed", tiny_data.splits(fail_at=(10_001, 1)))
    resumed = trained(finetuned, plain_net, members, config, tmp_path / "killed", tiny)
    assert equal(weights(whole.net), weights(resumed.net))
    assert (whole.history, whole.after) == (resumed.history, resumed.after)


def test_a_training_in_vain_leaves_the_weights_that_all_share(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = trained(finetuned, plain_net, members, replace(config, epochs=1, lr=1e-30), tmp_path, tiny)
    assert result.gain == 0
    assert result.net is finetuned.net
    assert "lower pool.lr_share, or set pool.epochs to 0" in caplog.text


def test_a_training_that_diverges_names_the_keys_of_the_pool(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> None:
    """Nothing resumes it, so that the remedy of other trainings would not help."""
    with pytest.raises(DivergenceError) as found:
        trained(finetuned, plain_net, members, replace(config, lr=1e30), tmp_path, tiny)
    assert str(found.value).startswith("train_pool: the loss became ")
    assert str(found.value).endswith("; lower pool.lr_share (the rate is 1e+30), or set pool.epochs to 0")


@pytest.mark.parametrize(("teacher", "is_largest"), [(None, False), ("largest", True)])
def test_the_original_network_teaches_or_the_largest_subnet(
    teacher: str | None,
    is_largest: bool,
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With another original network the result is another one, unless the largest SubNet teaches."""
    config = replace(config, teacher=teacher, epochs=2, accept_chance=True)
    noise = {name: weight + 0.1 for name, weight in plain_net.graph.weights.items() if weight.dtype == np.float32}
    other = plain_net.with_weights({**plain_net.graph.weights, **noise})
    one = trained(finetuned, plain_net, members, config, tmp_path / "one", tiny)
    two = trained(finetuned, other, members, config, tmp_path / "two", tiny)
    assert (one.history == two.history) is is_largest
    assert torch.is_grad_enabled()


def test_a_process_joins_the_others_before_it_takes_an_accelerator(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it has joined, ``cuda`` is the first GPU in every process."""
    order: list[str] = []
    join, resolve = training.join, training.resolve
    monkeypatch.setattr(training, "join", lambda asked: order.append("join") or join(asked))
    monkeypatch.setattr(training, "resolve", lambda name: order.append("resolve") or resolve(name))
    trained(finetuned, plain_net, members, replace(config, epochs=1), tmp_path, tiny)
    assert order == ["join", "resolve"]
