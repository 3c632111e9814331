"""Accuracies during training: what is measured and when, where it is told, and that it changes nothing."""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import autotailor
import tiny_data
from autotailor import finetuning, tracking
from autotailor.accuracy import Calibrator, evaluate
from autotailor.accuracy.evaluation import percent
from autotailor.data import DataSplits
from autotailor.data.excerpt import excerpt
from autotailor.finetuning import FinetuneConfig, FinetuneResult
from autotailor.finetuning.config import PanelConfig, WatchConfig
from autotailor.tracking.journal import JOURNALS
from training import PRETRAIN, equal, fresh, weights

EACH = PanelConfig(every=1, images=15, subnets=3)
PARTS = {"largest_accuracy", "smallest_accuracy", "panel_1_accuracy", "panel_2_accuracy", "panel_3_accuracy"}
RUN = tracking.RunKey("net", "host", "abc123", {})


class Kept:
    """A record that keeps what it takes."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, float]]] = []

    def __call__(self, metrics: Mapping[str, float], epoch: int) -> None:
        self.rows.append((epoch, dict(metrics)))


def test_the_weights_and_the_losses_are_the_same_bits_with_and_without_a_panel(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    without, watched = (
        finetuning.finetune(plain_net, tiny, replace(finetune_config, panel=panel), tmp_path / str(panel.every))
        for panel in (PanelConfig(every=0), EACH)
    )
    assert equal(weights(without.net), weights(watched.net))
    assert without.metrics == watched.metrics
    assert [set(row) for row in without.history] == [{"epoch", "loss", "lr"}] * 2
    assert [{key: row[key] for key in without.history[0]} for row in watched.history] == without.history


def test_a_training_goes_on_whatever_panel_it_began_with(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(finetune_config, checkpoint_seconds=0.0, panel=EACH)
    whole = finetuning.finetune(plain_net, tiny, config, tmp_path / "whole")
    broken, other = tiny_data.splits(fail_at=(1, 1)), replace(config, panel=PanelConfig(every=0))
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(plain_net, broken, other, tmp_path / "killed")
    resumed = finetuning.finetune(plain_net, tiny, config, tmp_path / "killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert resumed.history[1] == whole.history[1]
    assert "panel_accuracy" not in resumed.history[0]


def test_every_accuracy_is_that_of_the_recalibrated_subnet_on_part_of_the_validation_set(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    result = finetuning.finetune(plain_net, tiny, replace(finetune_config, panel=EACH), tmp_path)
    row = result.history[-1]
    assert set(row) == {"epoch", "loss", "lr", "panel_accuracy", *PARTS}
    module = result.net.module(logits=True).eval()
    calibrator, images = Calibrator(tiny, replace(finetune_config.calibration, images=15)), excerpt(tiny.validation, 15)
    for name, subnet in (("largest", result.net.largest()), ("smallest", result.net.smallest())):
        right = evaluate(module, subnet, images, calibrator.statistics(module, subnet)).values
        assert row[f"{name}_accuracy"] == percent(right)
    assert row["panel_accuracy"] == pytest.approx(sum(row[f"panel_{n}_accuracy"] for n in (1, 2, 3)) / 3)


def test_a_panel_may_have_one_image(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(finetune_config, epochs=1, panel=PanelConfig(every=1, images=1, subnets=1))
    (row,) = finetuning.finetune(plain_net, tiny, config, tmp_path).history
    assert row["largest_accuracy"] in (0.0, 100.0)


def test_the_number_of_workers_changes_no_accuracy(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    one, three = (
        finetuning.finetune(plain_net, tiny, replace(finetune_config, workers=n, panel=EACH), tmp_path / str(n))
        for n in (1, 3)
    )
    assert one.history == three.history


@pytest.mark.parametrize(("every", "measured"), [(1, [0, 1, 2, 3, 4]), (2, [0, 1, 3, 4]), (9, [0, 4]), (0, [])])
def test_every_k_epochs_and_after_the_first_and_the_last_one(
    every: int, measured: list[int], tiny: DataSplits, tmp_path: Path
) -> None:
    config = replace(PRETRAIN, epochs=5, panel=WatchConfig(every=every, images=10))
    history = finetuning.pretrain(fresh(), tiny, config, tmp_path).history
    assert [row["epoch"] for row in history if "validation_accuracy" in row] == measured


def test_a_network_in_pretraining_is_watched_without_changing_it(
    pretrained: finetuning.PretrainResult, tiny: DataSplits, tmp_path: Path
) -> None:
    config = replace(PRETRAIN, panel=WatchConfig(every=1, images=1000))
    watched = finetuning.pretrain(fresh(), tiny, config, tmp_path)
    assert equal(watched.state_dict, pretrained.state_dict)
    assert watched.history[-1]["validation_accuracy"] == watched.metrics["validation_accuracy"]


def test_each_epoch_is_one_line_with_rate_time_left_and_accuracies(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        result = finetuning.finetune(plain_net, tiny, replace(finetune_config, panel=EACH), tmp_path)
    lines = [line for line in caplog.messages if "epoch 2 of 2" in line]
    accuracies = [f"{result.history[1][f'{name}_accuracy']:.1f} %" for name in ("largest", "smallest", "panel")]
    assert len(lines) == 1
    assert " images/s, 0:00:00 left; largest {}, smallest {}, panel {}".format(*accuracies) in lines[0]


def test_metrics_are_in_the_journal_of_mlflow_while_the_training_runs_and_whole_after_an_interruption(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(finetune_config, checkpoint_seconds=0.0, panel=EACH)
    broken = tiny_data.splits(fail_at=(1, 1))

    def train(data: DataSplits, tracked: Path) -> FinetuneResult:
        with tracking.child(tracked, RUN, {"rule": "finetune"}, {}) as run:
            return finetuning.finetune(plain_net, data, config, tmp_path / "work", run.metrics)

    with pytest.raises(KeyboardInterrupt):
        train(broken, tmp_path / "first")
    assert [line["step"] for line in metrics(tmp_path / "first")] == [0]
    result = train(tiny, tmp_path / "second")
    told = metrics(tmp_path / "second")
    assert [line["step"] for line in told] == [0, 1]
    for line, row in zip(told, result.history, strict=True):
        assert {**line["values"], **row} == line["values"]
    assert told[1]["values"]["images_per_second"] > 0


def metrics(folder: Path) -> list[dict[str, object]]:
    """The metrics in the only journal of a tracking folder."""
    (journal,) = (folder / JOURNALS).iterdir()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line for line in lines if line["event"] == "metrics"]


def test_the_earlier_epochs_are_recorded_again_after_an_interruption(tiny: DataSplits, tmp_path: Path) -> None:
    kept, broken = Kept(), tiny_data.splits(fail_at=(2, 1))
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(fresh(), broken, PRETRAIN, tmp_path)
    finetuning.pretrain(fresh(), tiny, PRETRAIN, tmp_path, kept)
    assert [epoch for epoch, _ in kept.rows] == [0, 1, 2]
