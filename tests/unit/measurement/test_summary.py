"""What of ``summary.csv`` is measured on a device."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from autotailor.data import EvaluationSet
from autotailor.measurement import summary
from autotailor.measurement.config import Effort
from autotailor.profiling import DeviceConfig, ProfilingError
from autotailor.profiling.networks.timing import Measurement

NETWORKS: summary.Networks = {"largest": (Path("somewhere"), (1, 3, 32, 32)), "original": (Path(), (1, 3, 32, 32))}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """What is asked of a device that times a network at 1 ms in the first round, 2 ms in the second and so on."""
    found: list[tuple[int, float]] = []

    @contextlib.contextmanager
    def session(device: DeviceConfig) -> Iterator[None]:
        yield None

    def rounds(networks: Any, device: Any, count: int, *, seconds_each: float, lut: Any) -> list[list[Measurement]]:
        found.append((count, seconds_each))
        return [[Measurement(name, 1.0 + i, 0.1, 3, 1.0 + i) for name in networks] for i in range(count)]

    def no_memory(*_: object) -> float:
        raise ProfilingError("nothing reports memory")

    monkeypatch.setattr(summary, "Session", session)
    monkeypatch.setattr(summary, "measure_rounds", rounds)
    monkeypatch.setattr(summary, "measure_baseline", no_memory)
    return found


def test_networks_are_timed_as_often_and_as_long_as_asked(asked: list[tuple[int, float]]) -> None:
    lut: Any = "that of the run"
    table = summary.measured_on_device(NETWORKS, DeviceConfig(name="host"), lut, Effort(rounds=3, seconds=0.25))
    assert asked == [(3, 0.25)]
    assert table["name"].tolist() == ["largest", "original"]
    assert table["latency_ms_measured"].tolist() == [2.0, 2.0]
    assert table["memory_mb_measured"].isna().all()
    assert table["share_measured"].tolist() == [1.0, 1.0]
    assert table["share_standard_error"].tolist() == [0.0, 0.0]


def test_nothing_is_timed_without_a_table(asked: list[tuple[int, float]]) -> None:
    table = summary.measured_on_device(NETWORKS, DeviceConfig(name="host"), None, Effort())
    assert asked == []
    assert table.drop(columns="name").isna().all(axis=None)


def test_exports_that_miss_their_budget_are_named(caplog: pytest.LogCaptureFixture) -> None:
    names = ["largest", "budget_01", "budget_02", "original"]
    table = pd.DataFrame({"name": names, "subnet": ["l", "s", "m", ""], "latency_ms_measured": [9.0, 1.0, 2.1, 9.0]})
    found = summary.with_budgets(table, {"budget_01": 1.0, "budget_02": 2.0})
    assert found["budget_met"].tolist() == [None, True, False, None]
    assert found["budget_ms"].tolist()[1:3] == [1.0, 2.0]
    assert "budget_02: measured at 2.1 ms, above its budget of 2 ms" in caplog.text
    assert "budget_01" not in caplog.text
    unknown = summary.with_budgets(table.assign(latency_ms_measured=float("nan")), {"budget_01": 1.0})
    assert unknown["budget_met"].isna().all()


@pytest.mark.parametrize("limit", [3.0, 5.9])
def test_a_share_is_of_the_largest_subnet_of_the_same_session(limit: float, caplog: pytest.LogCaptureFixture) -> None:
    """A budget of 60 % that the search took for 3 ms is one of 6 ms where the largest SubNet takes 10 ms."""
    names = ["largest", "budget_01", "budget_02", "original"]
    columns = {"latency_ms_measured": [10.0, 5.95, 4.0, 10.0], "latency_ms_standard_error": [0.01] * 4}
    table = pd.DataFrame({"name": names, "subnet": ["l", "s", "m", ""], **columns})
    found = summary.with_budgets(table, {"budget_01": limit, "budget_02": 3.0}, {"budget_01": 0.6})
    assert found["budget_ms"].tolist()[1:3] == pytest.approx([6.0, 3.0])
    assert found["budget_met"].tolist()[1:3] == [True, False]
    assert "budget_01" not in caplog.text
    away = summary.with_budgets(table.assign(latency_ms_measured=np.nan), {"budget_01": limit}, {"budget_01": 0.6})
    assert away["budget_ms"].tolist()[1] == limit


def test_the_largest_subnet_keeps_a_budget_of_all_its_latency(caplog: pytest.LogCaptureFixture) -> None:
    """It is timed twice, once for the budget; another SubNet that takes as long has missed the budget."""
    names = ["largest", "budget_01", "budget_02", "budget_03"]
    table = pd.DataFrame({"name": names, "subnet": ["l", "l", "s", "l"], "latency_ms_measured": [10.0, *[10.004] * 3]})
    limits, shares = dict.fromkeys(names[1:], 10.0), {"budget_01": 1.0, "budget_02": 1.0, "budget_03": 0.9}
    found = summary.with_budgets(table, limits, shares)
    assert found["budget_met"].tolist()[1:] == [True, False, False]
    assert "budget_01" not in caplog.text


def test_the_error_of_a_change_is_that_of_the_same_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where a SubNet is wrong on all images that the original is wrong on, only the others scatter."""
    right = {"budget_01": np.arange(100) < 90, "original": np.arange(100) < 94}
    monkeypatch.setattr(summary, "accuracy_of_onnx", lambda path, test: right[path.stem])
    models = {name: tmp_path / f"{name}.onnx" for name in right}
    for path in models.values():
        path.write_bytes(b"12")
    test = SimpleNamespace(groups=np.arange(100), task="classification", labels=np.zeros(100, dtype=np.int64))
    table = summary._measured_accuracy(models, cast(EvaluationSet, test)).set_index("name")
    differences = right["original"].astype(float) - right["budget_01"]
    error = table["accuracy_change_standard_error"]
    assert error["budget_01"] == pytest.approx(100 * differences.std(ddof=1) / 10)
    assert error["budget_01"] < table["accuracy_standard_error"]["budget_01"]
    assert np.isnan(error["original"])
