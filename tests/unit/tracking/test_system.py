"""The machine's metrics in the journal of a rule."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from autotailor import tracking
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store
from stored_runs import child_run

RUN = tracking.RunKey("net", "host", "abc123", {})


def sampled(folder: Path, seconds: float) -> list[dict[str, float]]:
    """The samples in the journal of a rule that takes this long."""
    with tracking.child(folder, RUN, {"rule": "finetune"}, {}) as run, tracking.watched(run):
        time.sleep(seconds)
    (journal,) = (folder / JOURNALS).iterdir()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line["values"] for line in lines if line["event"] == "metrics"]


def test_the_machine_is_sampled_while_a_rule_runs_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(sampled(tmp_path / "short", 0.0)) == 1
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    samples = sampled(tmp_path / "long", 0.3)
    assert len(samples) >= 3
    for sample in samples:
        assert 0 < sample["system/system_memory_usage_percentage"] < 100
        assert 0 <= sample["system/cpu_utilization_percentage"] <= 100
        assert all(key.startswith("system/") for key in sample)
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    assert sampled(tmp_path / "off", 0.0) == []


@pytest.mark.parametrize("hidden", ["cpu_percent", "net_io_counters", "disk_usage", "virtual_memory"])
def test_what_the_machine_hides_is_left_out(hidden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phones and hardened containers hide files of ``/proc``; a rule must not fail for its page of metrics."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/proc/stat")

    (whole,) = sampled(tmp_path / "whole", 0.0)
    monkeypatch.setattr(psutil, hidden, refuse)
    (sample,) = sampled(tmp_path / "hidden", 0.0)
    assert {} != sample.keys() < whole.keys()


@pytest.mark.parametrize("interval", ["inf", "1e300", "nan", "-1", "often"])
def test_with_an_interval_that_makes_no_sense_the_end_is_sampled(
    interval: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", interval)
    assert len(sampled(tmp_path, 0.0)) == 1


def test_gpus_are_sampled_where_their_library_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def utilization(handle: int) -> SimpleNamespace:
        if handle == 1:
            raise RuntimeError("not supported")
        return SimpleNamespace(gpu=70)

    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=2e9, total=8e9),
        nvmlDeviceGetUtilizationRates=utilization,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    (sample,) = sampled(tmp_path, 0.0)
    assert sample["system/gpu_0_utilization_percentage"] == 70
    assert "system/gpu_1_utilization_percentage" not in sample
    assert sample["system/gpu_1_memory_usage_megabytes"] == 2000
    assert sample["system/gpu_0_memory_usage_percentage"] == 25


def test_the_machine_s_metrics_keep_their_names_in_the_parent(store: Store, tmp_path: Path) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "finetune"}, {}) as run, tracking.watched(run):
        run.metrics({"loss": 1.0})
    assert Reader(store, tmp_path / JOURNALS).read()
    child, parent = child_run(store, "finetune"), store.client.get_run(store.parent(RUN))
    ours = {key for key in parent.data.metrics if not key.startswith("system/")}
    assert ours == {"finetune/loss"}
    assert "system/cpu_utilization_percentage" in child.data.metrics.keys() & parent.data.metrics.keys()
