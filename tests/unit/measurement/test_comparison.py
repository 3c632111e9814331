"""The comparison with uniformly scaled networks."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import autotailor
import tiny_data
from autotailor.finetuning import FinetuneConfig, ScaledConfig, Teacher
from autotailor.measurement import comparison
from autotailor.measurement.comparison import (
    CompareConfig,
    ComparisonError,
    columns,
    compare,
    matched_widths,
)
from autotailor.profiling import DeviceConfig
from autotailor.search import LATENCY, costs
from oracles import Oracle

SUMMARY = pd.DataFrame(
    {"name": ["largest", "budget_01", "budget_02", "original"], "latency_ms_measured": [2.0, 0.5, 1.1, 2.0]}
)
MEASURED = SUMMARY.set_index("name")["latency_ms_measured"]
LATENCIES = {0.25: 0.4, 0.5: 0.7, 0.75: 1.2, 1.0: 2.0}


def test_of_networks_that_are_equally_fast_the_widest_is_met() -> None:
    assert matched_widths(MEASURED, {0.25: 0.6, 0.3: 0.61, 0.35: 0.625, 0.4: 0.64}, ("budget_01",)) == {
        "budget_01": 0.35
    }


def test_a_subnet_slower_than_every_scaled_network_meets_the_widest() -> None:
    assert matched_widths(MEASURED, {0.25: 0.3, 0.5: 0.4}, ("budget_02",)) == {"budget_02": 0.5}


def test_each_subnet_meets_the_fastest_network_that_is_not_faster() -> None:
    assert matched_widths(MEASURED, LATENCIES, ()) == {"budget_01": 0.5, "budget_02": 0.75}
    assert matched_widths(MEASURED, LATENCIES, ("budget_01",)) == {"budget_01": 0.5}


def test_widths_that_do_not_shrink_latency_are_passed_over() -> None:
    assert matched_widths(MEASURED, {0.5: 1.5, 0.6: 1.3, 1.0: 2.0}, ("budget_01",)) == {"budget_01": 0.6}


def test_unknown_names_are_listed() -> None:
    with pytest.raises(ComparisonError, match="budget_09"):
        matched_widths(MEASURED, LATENCIES, ("budget_09",))


def test_scaled_networks_are_trained_and_measured(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    config = CompareConfig(names=("budget_01",), widths=(0.5,), seeds=(0, 1), lrs=(1e-3, 1e-2))
    table = compare(
        resnet_net,
        tiny_data.splits(),
        config,
        FinetuneConfig(epochs=1, batch_size=16),
        summary=SUMMARY,
        images=100,
        cost=LATENCY,
        device=DeviceConfig.from_section({"name": "test"}),
        workdir=tmp_path,
    )
    assert list(table.columns) == list(columns(LATENCY))
    assert list(table["seed"]) == [0, 1]
    assert list(table["subnets"]) == ["budget_01"] * 2
    assert (table["images"] >= 100).all()
    assert (table["latency_ms_measured"] > 0).all()
    assert set(table["learning_rate"]) <= set(config.lrs)


def test_without_a_device_networks_meet_subnets_of_equal_macs(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    whole = float(resnet_net.macs().predict(resnet_net.largest().to_array())[0])
    summary = pd.DataFrame({"name": ["largest", "budget_01"], "macs_m": [whole, 0.2 * whole]})
    config = CompareConfig(names=(), widths=(0.25, 0.5, 1.0), seeds=(0,), lrs=(1e-3,))
    table = compare(
        resnet_net,
        tiny_data.splits(),
        config,
        FinetuneConfig(epochs=1, batch_size=16),
        summary=summary,
        images=16,
        cost=costs()["macs"],
        device=None,
        workdir=tmp_path,
    )
    assert list(table.columns) == list(columns(costs()["macs"]))
    (row,) = table.to_dict("records")
    assert row["width"] == 0.5, "half the width has a quarter of the MACs"
    assert 0.2 * whole < row["macs_m"] < 0.35 * whole


@pytest.mark.parametrize(("teacher", "is_oracle"), [(None, False), ("largest", False), ("oracles:Oracle", True)])
def test_scaled_networks_learn_from_the_supernets_teacher_with_its_parameters(
    teacher: str | None,
    is_oracle: bool,
    resnet_net: autotailor.SuperNet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Asked(Exception):
        """What the comparison asks for is known; nothing needs to be trained."""

    def ask(factory: object, found: Teacher, data: object, config: ScaledConfig, *rest: object) -> None:
        images = tiny_data.splits().validation.images[:4]
        own = resnet_net.build(resnet_net.largest(), logits=True)
        assert torch.equal(found.network(images), Oracle()(images) if is_oracle else own(images))
        assert config.ema == 0.9
        raise Asked

    monkeypatch.setattr(comparison, "train_scaled", ask)
    summary = pd.DataFrame({"name": ["largest", "budget_01"], "macs_m": [2.0, 1.0]})
    with pytest.raises(Asked):
        compare(
            resnet_net,
            tiny_data.splits(),
            CompareConfig(names=(), widths=(0.5,), seeds=(0,), lrs=(1e-3,)),
            FinetuneConfig(epochs=1, batch_size=16, ema=0.9, teacher=teacher),
            summary=summary,
            images=16,
            cost=costs()["macs"],
            device=None,
            workdir=tmp_path,
        )


def test_networks_are_measured_at_the_speed_of_the_summary(
    resnet_net: autotailor.SuperNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(Exception):
        """What is asked of the device is known; nothing needs to be measured."""

    table = object()

    def ask(networks: object, device: object, *, seconds_each: float, lut: object) -> None:
        assert lut is table
        raise Asked

    monkeypatch.setattr(comparison, "measure_networks", ask)
    with pytest.raises(Asked):
        compare_on_device(resnet_net, SUMMARY, tmp_path, table)


def test_subnets_that_were_not_measured_are_refused(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    unmeasured = SUMMARY.assign(latency_ms_measured=float("nan"))
    with pytest.raises(ComparisonError, match=r"no latency_ms_measured for budget_01, budget_02.*leave lut=\.\.\. out"):
        compare_on_device(resnet_net, unmeasured, tmp_path, None)


def compare_on_device(net: autotailor.SuperNet, summary: pd.DataFrame, workdir: Path, lut: Any) -> pd.DataFrame:
    """A comparison on this machine."""
    config = CompareConfig(names=(), widths=(0.5,), seeds=(0,), lrs=(1e-3,))
    training, device = FinetuneConfig(epochs=1, batch_size=16), DeviceConfig.from_section({"name": "test"})
    return compare(
        net,
        tiny_data.splits(),
        config,
        training,
        summary=summary,
        images=16,
        cost=LATENCY,
        device=device,
        workdir=workdir,
        lut=lut,
    )
