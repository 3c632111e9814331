"""Whole networks on a device whose speed changes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import sem

from autotailor.profiling import DeviceConfig, mean_of_rounds, measure_rounds
from autotailor.profiling.device import Fingerprint
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.networks import timing
from autotailor.profiling.networks.kept import SUFFIX
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.transports.local import LocalTransport
from autotailor.work import KEPT

ANCHOR_MS = 2.0
DEVICE = Fingerprint({"hardware": {"cpu": "A", "machine": "x86_64"}, "runtime": {"version": "1"}, "threads": 1})
LUT: Any = SimpleNamespace(latencies=lambda: {"anchor": ANCHOR_MS}, fingerprint=DEVICE.id, device=DEVICE)


class Unsteady(Session):
    """A device that is so much slower, batch by batch; networks suffer twice as much as the anchor."""

    def __init__(self, slowness: Sequence[float]) -> None:
        self.device = DeviceConfig.from_section({"name": "test", "drift": 0.2})
        self.transport = LocalTransport(self.device)
        self.fingerprint = DEVICE
        self.anchor = Program("anchor", "", (), "out0")
        self.slowness: Iterator[float] = iter(slowness)
        self.batches: list[list[str]] = []

    def network(self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]]) -> Program:
        return Program(key, None, tuple(inputs), "out0")

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        for batch in batches:
            slow = next(self.slowness)
            self.batches.append([program.key for program in batch.programs])
            times = {"anchor": ANCHOR_MS * slow} | dict.fromkeys(self.batches[-1], 1.0 + 2.0 * (slow - 1.0))
            on_records(
                [Record(self.fingerprint.id, key, (ms,) * 8, ANCHOR_MS * slow, 3, 1.0) for key, ms in times.items()]
            )
        return {}


def measured(device: Session, count: int, lut: Any = LUT) -> list[float]:
    folders = {f"n{i}": (Path(), (1, 3, 8, 8)) for i in range(count)}
    (found,) = measure_rounds(folders, device, 1, lut=lut)
    assert [measurement.key for measurement in found] == list(folders)
    return [measurement.latency_ms for measurement in found]


@pytest.mark.parametrize(
    ("slowness", "attempts", "expected_ms"),
    [((1.1,), 1, 1.2 / 1.1), ((1.5, 1.0), 2, 1.0), ((0.6, 1.3, 1.4), 3, 1.6 / 1.3), ((1.3, 1.4, 1.5), 3, 1.6 / 1.3)],
)
def test_the_batch_nearest_to_the_speed_of_the_lut_counts(
    slowness: Sequence[float], attempts: int, expected_ms: float, caplog: pytest.LogCaptureFixture
) -> None:
    device = Unsteady(slowness)
    assert measured(device, 2) == pytest.approx([expected_ms] * 2)
    assert device.batches == [["n0", "n1"]] * attempts
    assert ("2 networks were measured while the anchor was off by more than 20 %" in caplog.text) == (attempts == 3)


def test_drift_in_several_rounds_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    folders = {name: (Path(), (1, 3, 8, 8)) for name in ("n0", "n1", "n2")}
    measure_rounds(folders, Unsteady((1.3, 1.4, 1.5) * 4), 4, lut=LUT)
    (warning,) = (record.message for record in caplog.records if "while the anchor was off" in record.message)
    assert warning.startswith("device test: 3 networks were measured")


class Disturbed(Unsteady):
    """A device on which the first batches of a network come out negative, because latencies are differences."""

    def __init__(self, negative: int) -> None:
        super().__init__((1.0,) * 9)
        self.negative = negative

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        def handed_on(records: list[Record]) -> None:
            is_wrong = len(self.batches) <= self.negative
            on_records([replace(r, blocks=(-0.1,) * 8) if is_wrong and r.key == "n0" else r for r in records])

        return super().measure(batches, handed_on)


@pytest.mark.parametrize("lut", [LUT, None])
def test_a_latency_that_came_out_negative_is_measured_again(lut: Any) -> None:
    device = Disturbed(2)
    assert measured(device, 2, lut) == pytest.approx([1.0, 1.0])
    assert device.batches == [["n0", "n1"], ["n0"], ["n0"]]


def test_where_it_stays_negative_the_interruptions_are_named() -> None:
    with pytest.raises(ProfilingError, match=r"device test: n0: no latency above 0 in 3 batches.*doctor --device test"):
        measured(Disturbed(3), 2)


def test_a_device_may_cool_down_before_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Unsteady((1.5, 1.0))
    before: list[int] = []
    monkeypatch.setattr(timing, "wait_until_cool", lambda transport, name: before.append(len(device.batches)))
    assert measured(device, 2) == pytest.approx([1.0] * 2)
    assert before == [0, 1]


def test_only_what_drifted_is_measured_again() -> None:
    device = Unsteady((1.0, 1.5, 1.1))
    found = measured(device, 40)
    assert [len(batch) for batch in device.batches] == [32, 8, 8]
    assert found == pytest.approx([1.0] * 32 + [1.2 / 1.1] * 8)


def test_without_a_lut_nothing_is_measured_again() -> None:
    device = Unsteady((1.5,))
    assert measured(device, 2, lut=None) == pytest.approx([2.0] * 2)


def test_rounds_are_averaged_and_differ_by_their_standard_error() -> None:
    device = Unsteady([1.0, 1.1, 1.05, 0.9])
    rounds = measure_rounds({"n0": (Path(), (1, 3, 8, 8))}, device, 4)
    (mean,) = mean_of_rounds(rounds)
    latencies = [found.latency_ms for (found,) in rounds]
    assert mean.key == "n0"
    assert mean.latency_ms == pytest.approx(np.mean(latencies))
    assert mean.standard_error == pytest.approx(sem(latencies))
    assert mean.raw_ms == pytest.approx(np.mean([1.0, 1.2, 1.1, 0.8]))
    assert mean.repeats == 12


class Interrupted(Unsteady):
    """Is interrupted before a batch."""

    def __init__(self, slowness: Sequence[float], after: int) -> None:
        super().__init__(slowness)
        self.after = after

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        if len(self.batches) >= self.after:
            raise KeyboardInterrupt
        return super().measure(batches, on_records)


def test_an_interrupted_measurement_goes_on_with_the_next_round(tmp_path: Path) -> None:
    """The rounds of both runs together say what one run would have said, and are not part of a finished rule's work."""
    networks = {"n0": (Path(), (1, 3, 8, 8)), "n1": (Path(), (1, 3, 8, 8))}
    slowness = [1.5, 1.1, 1.05, 0.9, 1.0]
    with pytest.raises(KeyboardInterrupt):
        measure_rounds(networks, Interrupted(slowness, 3), 4, lut=LUT, kept=tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["1.round", "2.round"]
    assert SUFFIX not in KEPT
    second = Unsteady(slowness[3:])
    found = measure_rounds(networks, second, 4, lut=LUT, kept=tmp_path / "kept")
    assert len(second.batches) == 2
    assert found == measure_rounds(networks, Unsteady(slowness), 4, lut=LUT)
    assert found == measure_rounds(networks, Unsteady([]), 4, lut=LUT, kept=tmp_path / "kept")


@pytest.mark.parametrize("change", ["network", "device", "damage"])
def test_rounds_of_something_else_are_measured_again(change: str, tmp_path: Path) -> None:
    networks = {"n0": (Path(), (1, 3, 8, 8))}
    measure_rounds(networks, Unsteady([1.0, 1.0]), 2, kept=tmp_path)
    device = Unsteady([1.0, 1.0])
    if change == "network":
        networks["n1"] = networks["n0"]
    elif change == "device":
        device.fingerprint = Fingerprint({**DEVICE.facts, "threads": 2})
    else:
        (tmp_path / "1.round").write_text("[{")
    measure_rounds(networks, device, 2, kept=tmp_path)
    assert len(device.batches) == 2


def test_networks_are_not_measured_on_another_machine_than_their_operators() -> None:
    device = Unsteady([1.0])
    facts = {**DEVICE.facts, "hardware": {"cpu": "B", "machine": "x86_64"}, "runtime": {"version": "2"}}
    device.fingerprint = Fingerprint(facts)
    differences = r"hardware.cpu was 'A', is 'B'; runtime.version was '1', is '2'"
    with pytest.raises(ProfilingError, match=rf"another machine.*\({differences}\).*--forcerun profile"):
        measured(device, 1)
    assert device.batches == []
    with pytest.raises(ProfilingError, match="the table does not say"):
        measured(device, 1, SimpleNamespace(latencies=dict, fingerprint="other", device=None))
