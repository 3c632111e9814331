"""How far a network follows the anchor: by formula, and on a simulated core that others use in bursts."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotailor.profiling import DeviceConfig, mean_of_rounds, measure_rounds
from autotailor.profiling.device import Fingerprint
from autotailor.profiling.measuring.remaining import ANCHOR_SHARE, BLOCKS
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.networks.following import following, scale
from autotailor.profiling.networks.timing import Measurement
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.differential import NS_PER_MS, robust
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.runner import loop
from autotailor.profiling.transports.local import LocalTransport

ANCHOR_MS = 1.6
SLICE_MS = 3.0
"""What a scheduler gives each of two processes in turn."""
NETWORKS_MS = (0.05, 0.1, 0.2, 1.6, 3.0)
DEVICE = Fingerprint({"threads": 1})
LUT: Any = SimpleNamespace(latencies=lambda: {"anchor": ANCHOR_MS}, fingerprint=DEVICE.id, device=DEVICE)
SETTINGS = {"runs": 3, "walks": 4, "settle_ms": 2.0}

Burst = Callable[[float], bool]


@pytest.mark.parametrize(
    ("anchors", "latencies", "expected"),
    [
        ((1.0,), (5.0,), 1.0),
        ((2.0, 2.0, 2.0), (5.0, 5.5, 5.2), 1.0),
        ((1.0, 1.5, 2.0), (0.3, 0.45, 0.6), 1.0),
        ((1.0, 1.5, 2.0), (0.3, 0.3, 0.3), 0.03),
        ((1.0, 1.01, 0.99), (0.3, 0.3, 0.3), 0.97),
        ((1.0, 1.5, 2.0), (0.3, 0.6, 1.2), 1.0),
        ((1.0, 1.5, 2.0), (0.3, 0.2, 0.1), 0.0),
    ],
    ids=["one batch", "steady anchor", "clock", "not at all", "no evidence", "twice", "against it"],
)
def test_a_network_follows_as_far_as_its_batches_show(
    anchors: Sequence[float], latencies: Sequence[float], expected: float
) -> None:
    assert following(anchors, latencies) == pytest.approx(expected, abs=0.01)


def test_a_network_that_does_not_follow_is_not_scaled() -> None:
    assert scale(3.0, 1.5, 0.0) == 1.0
    assert scale(3.0, 1.5, 1.0) == 0.5
    assert scale(3.0, 1.5, 0.5) == pytest.approx(0.5**0.5)


class Core:
    """A core whose clock has two speeds, and that another process shares while it is busy; times in ns and s."""

    def __init__(self, seed: int, busy: Burst, slow: Burst) -> None:
        self.ns, self.busy, self.slow = 0.0, busy, slow
        self.random = random.Random(seed)
        self.left = SLICE_MS * NS_PER_MS

    def run(self, ms: float) -> float:
        """Runs for so many milliseconds of the faster speed; returns nanoseconds of wall time."""
        begin, factor = self.ns, 1.3 if self.slow(self.ns / 1e9) else 1.0
        need = ms * NS_PER_MS * factor * self.random.gauss(1.0, 0.01)
        while need > 0:
            part = min(need, self.left if self.busy(self.ns / 1e9) else 1e5)
            need, self.ns = need - part, self.ns + part
            if self.busy(self.ns / 1e9):
                self.left -= part
                if self.left <= 0:
                    self.ns += SLICE_MS * NS_PER_MS * self.random.uniform(0.7, 1.3)
                    self.left = SLICE_MS * NS_PER_MS * self.random.uniform(0.7, 1.3)
        return self.ns - begin


class OnCore:
    """A program of the runner's loop that runs on a simulated core."""

    lengths = 1

    def __init__(self, core: Core, ms: float) -> None:
        self.core, self.ms = core, ms

    def run(self, which: int) -> int:
        return int(self.core.run(self.ms))


class Simulated(Session):
    """A session whose batches the runner's own loop times, on a simulated core."""

    def __init__(self, core: Core) -> None:
        self.device = DeviceConfig.from_section({"name": "test", "drift": 0.2})
        self.transport = LocalTransport(self.device)
        self.fingerprint = DEVICE
        self.anchor = Program("anchor", "", (), "out0")
        self.core = core

    def network(self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]]) -> Program:
        return Program(key, None, tuple(inputs), "out0")

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        for batch in batches:
            keys = ["anchor", *(program.key for program in batch.programs)]
            ready = [loop.Timed(key, self._program(key), {}, False) for key in keys]
            begin, passes, chance = self.core.ns, 0, random.Random(0)
            while passes < batch.least_passes or self.core.ns - begin < batch.seconds * 1e9:
                for timed in loop.turns(ready, ANCHOR_SHARE, chance):
                    loop.visit(timed, 0, SETTINGS, np.ones(1, dtype=np.float32))
                passes += 1
            blocks = [[ns / NS_PER_MS for ns in loop.block_means(timed.times[0], BLOCKS)] for timed in ready]
            anchor_ms = robust(blocks[0], 1).latency_ms
            on_records(
                [Record("f", k, tuple(found), anchor_ms, passes, 1.0) for k, found in zip(keys, blocks, strict=True)]
            )
        return {}

    def _program(self, key: str) -> Any:
        return OnCore(self.core, ANCHOR_MS if key == "anchor" else float(key))


def bursts(seed: int, mean_seconds: float) -> Burst:
    """Turns of something that goes on and off at random."""
    edges = np.cumsum(np.random.default_rng(seed).exponential(mean_seconds, 10_000))
    return lambda seconds: int(np.searchsorted(edges, seconds)) % 2 == 1


def never(seconds: float) -> bool:
    return False


def validated(monkeypatch: pytest.MonkeyPatch, busy: Burst, slow: Burst, seed: int = 0) -> list[Measurement]:
    core = Core(seed, busy, slow)
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: core.ns / 1e9))
    folders = {str(ms): (Path(), (1, 3, 8, 8)) for ms in NETWORKS_MS}
    return mean_of_rounds(measure_rounds(folders, Simulated(core), 5, seconds_each=0.3, lut=LUT))


def errors(found: Sequence[Measurement], exponent: Callable[[Measurement], float]) -> np.ndarray[Any, Any]:
    """Relative error of each network, if it were scaled by the anchor with this exponent."""
    reference = np.array(NETWORKS_MS)
    scaled = np.array([m.raw_ms * scale(1 + m.anchor_drift, 1.0, exponent(m)) for m in found])
    return np.asarray(scaled / reference - 1)


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_bursts_that_a_short_network_does_not_feel_are_not_corrected_in_it(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A run of 0.05 ms is hardly ever interrupted; the anchor's runs of 1.6 ms are."""
    kept, scaled = [], []
    for seed in range(3):
        found = validated(monkeypatch, bursts(seed, seconds), never, seed)
        kept.append(np.array([m.latency_ms for m in found]) / NETWORKS_MS - 1)
        scaled.append(errors(found, lambda _: 1.0))
    assert np.abs(scaled)[:, 0].max() > 0.08
    assert np.abs(kept)[:, 0].max() < 0.03
    assert np.abs(kept).mean() < 0.6 * np.abs(scaled).mean()


def test_a_slower_clock_is_corrected_in_all_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = validated(monkeypatch, never, bursts(1, 5.0))
    assert np.abs(errors(found, lambda _: 0.0)).max() > 0.05
    assert np.abs([m.latency_ms for m in found] / np.array(NETWORKS_MS) - 1).max() < 0.01
    assert min(m.follows for m in found) > 0.95


def test_a_clock_that_stays_slower_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    found = validated(monkeypatch, never, lambda seconds: True)
    assert [m.anchor_drift for m in found] == pytest.approx([0.3] * len(found), abs=0.01)
    assert [m.latency_ms for m in found] == pytest.approx(list(NETWORKS_MS), rel=0.01)
