"""Networks that are as fast as a polished SubNet, measured on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from controls import speed

from autotailor.artifacts import read_json
from autotailor.ir.execution.uniform import scale_uniformly
from autotailor.profiling import DeviceConfig


def test_latencies_are_measured_once_and_then_read(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "WIDTHS", (0.25, 1.0))
    monkeypatch.setattr(speed, "SECONDS", 0.1)
    make = partial(scale_uniformly, run.net.graph, divisor=8)
    ask = partial(speed.match, make, run.net.slice(run.net.smallest()), run.net.graph, DeviceConfig("host"), tmp_path)
    first = ask()
    found = read_json(tmp_path / "latencies.json")["ms"]
    assert list(found) == ["polished", "original", "0.25", "1"]
    assert all(ms > 0 for ms in found.values())
    assert first.latency == found[f"{first.width:g}"] / found["original"]
    assert first.polished == found["polished"] / found["original"]
    monkeypatch.delattr(speed, "measured")
    assert ask() == first
