"""Training of a few SubNets together, which keep sharing their weights."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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

Train = Callable[..., JointResult]


@pytest.fixture(scope="module")
def members(plain_net: autotailor.SuperNet) -> tuple[SubNet, ...]:
    (other,) = sample_distinct(plain_net.space, 1, np.random.default_rng(3))
    return plain_net.smallest(), other


@pytest.fixture
def config(finetune_config: FinetuneConfig) -> FinetuneConfig:
    return replace(finetune_config, epochs=6, lr=2e-3, sort=False, checkpoint_seconds=0.0)


@pytest.fixture
def train(
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> Train:
    """``train(folder, key=value ...)``: trains the members with these parameters."""

    def run(
        folder: str, data: DataSplits = tiny, original: autotailor.SuperNet = plain_net, **parameters: Any
    ) -> JointResult:
        changed = replace(config, **parameters)
        return train_jointly(finetuned.net, original, data, members, changed, tmp_path / folder)

    return run


def test_members_gain_and_share_the_weights_of_one_network(
    train: Train, finetuned: FinetuneResult, members: tuple[SubNet, ...], config: FinetuneConfig, tiny: DataSplits
) -> None:
    """What the result says of the members is what its network computes."""
    result = train("")
    assert result.gain > 0
    assert not equal(weights(result.net), weights(finetuned.net))
    assert result.images == 48 * config.epochs
    assert [row["panel_accuracy"] for row in result.history if "panel_accuracy" in row]
    calibrator, module = Calibrator(tiny, config.calibration), result.net.module().eval()
    for subnet in members:
        found = evaluate(module, subnet, tiny.validation, calibrator.statistics(module, subnet))
        assert 100 * found.values.mean() == pytest.approx(result.after[subnet.id])
    assert set(result.before) == set(result.after) == {subnet.id for subnet in members}
    document = result.document()
    assert document["is_better"]
    assert document["accuracy_validation"][members[0].id]["after"] == result.after[members[0].id]
    assert "of the members (2) on the validation set" in result.said("accuracy")


def test_trained_weights_have_statistics_of_their_own(
    train: Train,
    finetuned: FinetuneResult,
    plain_net: autotailor.SuperNet,
    members: tuple[SubNet, ...],
    config: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> None:
    """A share of recalibration that suits the weights before a training is none for those after it."""
    given = finetuned.net.recalibrated(0.5)
    found, alone = train_jointly(given, plain_net, tiny, members, config, tmp_path / "half"), train("own")
    assert found.after == alone.after
    assert found.net.elastic.recalibrated == (1.0 if found.gain > 0 else 0.5)


def test_only_members_and_the_largest_subnet_are_trained(
    train: Train, plain_net: autotailor.SuperNet, members: tuple[SubNet, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: set[SubNet] = set()
    draw = Listed.draw

    def noted(self: Listed, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        found = draw(self, progress, random)
        drawn.update(found)
        return found

    monkeypatch.setattr(Listed, "draw", noted)
    train("")
    assert drawn == {plain_net.largest(), *members}


def test_an_interrupted_training_ends_in_the_same_bits(train: Train) -> None:
    whole = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("killed", tiny_data.splits(fail_at=(10_001, 1)))
    resumed = train("killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert (whole.history, whole.after) == (resumed.history, resumed.after)


def test_a_training_in_vain_leaves_the_weights_that_all_share(
    train: Train, finetuned: FinetuneResult, tiny: DataSplits, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the labels are the original network's answers, the warning calls the share of right ones agreement."""
    result = train("", replace(tiny, labelled=False), epochs=1, lr=1e-30)
    assert result.gain == 0
    assert result.net is finetuned.net
    assert "train_pool: the mean agreement of the members was " in caplog.text
    assert "lower pool.lr_share, or set pool.epochs to 0" in caplog.text


def test_a_training_that_diverges_names_the_keys_of_the_pool(train: Train) -> None:
    """Nothing resumes it, so that the remedy of other trainings would not help."""
    with pytest.raises(DivergenceError) as found:
        train("", lr=1e30)
    assert str(found.value).startswith("train_pool: the loss became ")
    assert str(found.value).endswith("; lower pool.lr_share (the rate is 1e+30), or set pool.epochs to 0")


@pytest.mark.parametrize(("teacher", "is_largest"), [(None, False), ("largest", True)])
def test_the_original_network_teaches_or_the_largest_subnet(
    teacher: str | None, is_largest: bool, train: Train, plain_net: autotailor.SuperNet
) -> None:
    """With another original network the result is another one, unless the largest SubNet teaches."""
    asked = {"teacher": teacher, "epochs": 2, "accept_chance": True}
    noise = {name: weight + 0.1 for name, weight in plain_net.graph.weights.items() if weight.dtype == np.float32}
    other = plain_net.with_weights({**plain_net.graph.weights, **noise})
    one, two = train("one", **asked), train("two", original=other, **asked)
    assert (one.history == two.history) is is_largest


def test_a_process_joins_the_others_before_it_takes_an_accelerator(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it has joined, ``cuda`` is the first GPU in every process."""
    order: list[str] = []
    join, resolve = training.join, training.resolve
    monkeypatch.setattr(training, "join", lambda asked: order.append("join") or join(asked))
    monkeypatch.setattr(training, "resolve", lambda name: order.append("resolve") or resolve(name))
    train("", epochs=1)
    assert order == ["join", "resolve"]


def test_a_quarter_is_the_largest_and_the_others_of_the_list_share_the_rest(plain_net: autotailor.SuperNet) -> None:
    (other,) = sample_distinct(plain_net.space, 1, np.random.default_rng(3))
    listed = (plain_net.smallest(), other)
    strategy, random = Listed(listed, 2), np.random.default_rng(0)
    drawn = Counter(subnet for _ in range(600) for subnet in strategy.step(0.5, random))
    expected = {plain_net.largest(): 0.25, plain_net.smallest(): 0.375, other: 0.375}
    assert drawn.keys() == expected.keys()
    for subnet, share in expected.items():
        assert abs(drawn[subnet] - 1200 * share) < 4 * np.sqrt(1200 * share * (1 - share))


def test_another_list_is_another_training(plain_net: autotailor.SuperNet) -> None:
    one, other = (Listed([subnet], 1).identity for subnet in (plain_net.largest(), plain_net.smallest()))
    assert one != other
