"""The race of candidates: who is trained, who wins, and that an interrupted race ends in the same bits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import autotailor
import tiny_data
from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.data import DataSplits
from autotailor.finetuning import DistillationConfig, FinetuneConfig, TrainingError
from autotailor.finetuning.errors import DivergenceError
from autotailor.finetuning.joint import train_jointly
from autotailor.finetuning.polishing import PolishConfig, Polished, Round, polish
from autotailor.finetuning.polishing.race import COLUMNS
from autotailor.finetuning.training.watch import Record, no_record
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.space.subnet import SubNet
from training import equal

Contests = Mapping[str, Sequence[SubNet]]
Race = tuple[dict[str, Polished], pd.DataFrame]


def state(polished: Polished) -> dict[str, torch.Tensor]:
    assert polished.weights is not None
    return {name: torch.from_numpy(weight) for name, weight in polished.weights.items()}


@pytest.fixture(scope="module")
def race(
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    contests: Contests,
    inherited: Mapping[str, float],
    config: PolishConfig,
    tmp_path_factory: pytest.TempPathFactory,
) -> Race:
    return polish(resnet_net, resnet_net, tiny, contests, inherited, config, tmp_path_factory.mktemp("race"))


def test_the_best_by_inherited_weights_begin_and_the_best_of_them_go_on(
    race: Race, contests: Contests, inherited: Mapping[str, float], resnet_net: autotailor.SuperNet
) -> None:
    table = race[1]
    assert list(table.columns) == list(COLUMNS)
    first, second = table[table["round"] == 1], table[table["round"] == 2].set_index("subnet")
    for name, subnets in contests.items():
        ranked = sorted((s for s in subnets if s != resnet_net.largest()), key=lambda s: -inherited[s.id])
        heat = first[first["budgets"].str.split().map(lambda names, name=name: name in names)]
        assert set(heat["subnet"]) == {subnet.id for subnet in ranked[:2]}
        met = first[first["subnet"].isin([subnet.id for subnet in subnets])].set_index("subnet")
        (went_on,) = (id_ for id_, row in second.iterrows() if name in row["budgets"].split())
        assert met.loc[went_on, "accuracy_validation"] == met["accuracy_validation"].max()
        assert second.loc[went_on, "accuracy_before"] == met.loc[went_on, "accuracy_validation"]
    assert first["images"].unique().tolist() == [48]
    assert second["images"].unique().tolist() == [3 * 48]


def test_the_accuracy_that_is_said_is_that_of_the_weights(
    race: Race, resnet_net: autotailor.SuperNet, tiny: DataSplits
) -> None:
    polished = [each for each in race[0].values() if each.weights is not None]
    assert polished
    for each in polished:
        graph = resnet_net.slice(each.subnet).with_weights(each.weights)
        right = correctness(GraphModule(graph, logits=True), tiny.validation, resolution_of(each.subnet))
        assert percent(right) == each.polished


def test_a_race_that_was_killed_in_either_round_ends_in_the_same_bits(
    race: Race,
    resnet_net: autotailor.SuperNet,
    contests: Contests,
    inherited: Mapping[str, float],
    config: PolishConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> None:
    for fail_at in ((10_000, 1), (10_002, 2)):
        with pytest.raises(KeyboardInterrupt):
            polish(resnet_net, resnet_net, tiny_data.splits(fail_at=fail_at), contests, inherited, config, tmp_path)
    found, table = polish(resnet_net, resnet_net, tiny, contests, inherited, replace(config, workers=2), tmp_path)
    pd.testing.assert_frame_equal(table, race[1])
    for name, each in race[0].items():
        assert found[name].subnet == each.subnet
        assert equal(state(found[name]), state(each))


@pytest.fixture
def joint(config: PolishConfig) -> FinetuneConfig:
    """Six epochs, at a rate at which the tiny SuperNet learns."""
    return FinetuneConfig(
        epochs=6, batch_size=16, subnets=1, strategy="uniform", lr=2e-2, sort=False, checkpoint_seconds=0.0,
        calibration=config.calibration, distillation=DistillationConfig(weight=0.0),
    )  # fmt: skip


@pytest.fixture
def hold(
    resnet_net: autotailor.SuperNet,
    contests: Contests,
    inherited: Mapping[str, float],
    config: PolishConfig,
    joint: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
) -> Callable[..., Race]:
    """``hold(folder)``: a race after a joint training; at next to no rate it shows what it began with."""

    def run(
        folder: str,
        data: DataSplits = tiny,
        lr: float = 1e-30,
        lr_together: float = joint.lr,
        record: Record = no_record,
    ) -> Race:
        race, before = replace(config, lr=lr), replace(joint, lr=lr_together)
        return polish(resnet_net, resnet_net, data, contests, inherited, race, tmp_path / folder, None, before, record)

    return run


def test_candidates_that_have_trained_together_begin_with_the_weights_that_they_shared(
    hold: Callable[..., Race],
    resnet_net: autotailor.SuperNet,
    contests: Contests,
    inherited: Mapping[str, float],
    joint: FinetuneConfig,
    tiny: DataSplits,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    recorded: list[Mapping[str, float]] = []
    found, table = hold("race", record=lambda values, step: recorded.append(values))
    together, first = (table[table["round"] == number].set_index("subnet") for number in (0, 1))
    assert set(first.index) <= set(together.index)
    assert set(together["epochs"]) == {6}
    assert set(together["images"]) == {6 * 48}
    assert set(first["images"]) == {7 * 48}
    assert together["accuracy_before"].to_dict() == {id_: inherited[id_] for id_ in together.index}
    pd.testing.assert_series_equal(
        first["accuracy_before"], together["accuracy_validation"][first.index], check_names=False
    )
    assert [values["epoch"] for values in recorded] == [*range(6)]
    assert all(key == "epoch" or key.startswith("joint/") for values in recorded for key in values)
    assert "polish.joint: epoch 6 of 6, loss " in caplog.text
    assert f"polish: mean accuracy of the candidates ({len(together)}) on the validation set: " in caplog.text
    alike = entrants(contests, together.index)
    shared = train_jointly(resnet_net, resnet_net, tiny, alike, joint, tmp_path / "alone").net
    for each in found.values():
        assert each.weights is not None
        assert each.images in table.loc[table["accuracy_validation"] == each.polished, "images"].tolist()
        kernels = {name: weight for name, weight in shared.slice(each.subnet).weights.items() if weight.ndim == 4}
        assert kernels
        assert all(np.array_equal(each.weights[name], kernel) for name, kernel in kernels.items())


def test_a_race_that_was_killed_in_or_behind_the_joint_training_ends_in_the_same_bits(
    hold: Callable[..., Race],
) -> None:
    for fail_at in ((10_001, 1), (10_006, 1)):
        with pytest.raises(KeyboardInterrupt):
            hold("killed", tiny_data.splits(fail_at=fail_at), lr=2e-3)
    (found, table), (whole, same) = hold("killed", lr=2e-3), hold("whole", lr=2e-3)
    pd.testing.assert_frame_equal(table, same)
    assert all(equal(state(found[name]), state(each)) for name, each in whole.items())


def test_candidates_do_not_begin_with_weights_that_are_no_better(
    hold: Callable[..., Race], race: Race, config: PolishConfig, caplog: pytest.LogCaptureFixture
) -> None:
    found, table = hold("vain", lr=config.lr, lr_together=1e-30)
    assert "lower polish.joint.lr_share, or set polish.joint.epochs to 0" in caplog.text
    pd.testing.assert_frame_equal(table, race[1])
    assert all(equal(state(found[name]), state(each)) for name, each in race[0].items())


def entrants(contests: Contests, ids: Sequence[str]) -> list[SubNet]:
    """SubNets by id, in this order."""
    known = {subnet.id: subnet for subnets in contests.values() for subnet in subnets}
    return [known[id_] for id_ in ids]


def test_a_subnet_that_polishing_makes_worse_keeps_its_inherited_weights(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, contests: Contests, config: PolishConfig, tmp_path: Path
) -> None:
    perfect = {subnet.id: 100.0 for subnet in contests["budget_02"]}
    found, table = polish(
        resnet_net, resnet_net, tiny, contests, perfect, replace(config, rounds=(Round(1, 1),)), tmp_path
    )
    assert len(table) >= 1
    assert {name: each.subnet for name, each in found.items()} == {n: s[0] for n, s in contests.items()}
    assert all(each.weights is None and each.polished is None and each.inherited == 100.0 for each in found.values())


def test_the_best_weights_of_all_rounds_count(
    hold: Callable[..., Race], resnet_net: autotailor.SuperNet, tiny: DataSplits, caplog: pytest.LogCaptureFixture
) -> None:
    found, table = hold("high", lr=1.0)
    reached = table.groupby("subnet")["accuracy_validation"]
    assert (reached.last() < reached.max() - 10).any()
    assert "polish: the last round took SubNet" in caplog.text
    for name, each in found.items():
        rows = table[table["budgets"].str.split().map(lambda names, name=name: name in names)]
        assert each.weights is not None
        assert each.polished == rows["accuracy_validation"].max()
        row = rows[(rows["subnet"] == each.subnet.id) & (rows["accuracy_validation"] == each.polished)].iloc[-1]
        assert each.images == row["images"]
        graph = resnet_net.slice(each.subnet).with_weights(each.weights)
        right = correctness(GraphModule(graph, logits=True), tiny.validation, resolution_of(each.subnet))
        assert percent(right) == each.polished


def test_weights_that_are_worse_than_the_inherited_ones_are_never_exported(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, contests: Contests, config: PolishConfig, tmp_path: Path
) -> None:
    """Not even if what is expected of the SubNet, with its luck taken out, is less than what the weights reach."""
    perfect = {subnet.id: 100.0 for subnet in contests["budget_02"]}
    expected = dict.fromkeys(perfect, 1.0)
    found, _ = polish(resnet_net, resnet_net, tiny, contests, perfect, config, tmp_path, expected)
    assert all(each.weights is None and each.inherited == 100.0 for each in found.values())


def test_the_first_of_equals_wins(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, contests: Contests, config: PolishConfig, tmp_path: Path
) -> None:
    equal_ones = dict.fromkeys((subnet.id for subnet in contests["budget_02"]), 30.0)
    found, _ = polish(resnet_net, resnet_net, tiny, contests, equal_ones, replace(config, rounds=()), tmp_path)
    assert {name: each.subnet for name, each in found.items()} == {n: s[0] for n, s in contests.items()}


def test_a_race_that_diverges_names_keys_that_it_has(hold: Callable[..., Race]) -> None:
    with pytest.raises(DivergenceError, match=r"; lower polish\.lr \(now 1e\+30\), or set polish\.gradient_norm$"):
        hold("diverged", lr=1e30)


def test_without_rounds_the_most_accurate_subnet_is_exported_as_it_is(
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    contests: Contests,
    inherited: Mapping[str, float],
    config: PolishConfig,
    tmp_path: Path,
) -> None:
    found, table = polish(resnet_net, resnet_net, tiny, contests, inherited, replace(config, rounds=()), tmp_path)
    assert table.empty
    assert {name: each.subnet for name, each in found.items()} == {n: s[-1] for n, s in contests.items()}
    assert list(tmp_path.iterdir()) == []


def test_the_largest_subnet_alone_is_not_trained(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    largest = resnet_net.largest()
    found, table = polish(resnet_net, resnet_net, tiny, {"budget_01": [largest]}, {largest.id: 50.0}, config, tmp_path)
    assert table.empty
    assert found["budget_01"] == Polished(largest, 50.0)


def test_a_budget_that_no_subnet_meets_is_refused_before_training(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="no SubNet meets the budget budget_02"):
        polish(resnet_net, resnet_net, tiny, {"budget_02": []}, {}, config, tmp_path)
