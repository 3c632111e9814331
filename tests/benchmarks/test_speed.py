"""Networks that are as fast as a polished SubNet, measured on this machine."""

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
    ask = partial(
        speed.latencies, make, run.net.slice(run.net.smallest()), run.net.graph, DeviceConfig("host"), tmp_path
    )
    first = ask()
    found = read_json(tmp_path / "latencies.json")["ms"]
    assert list(found) == ["polished", "original", "0.25", "1"]
    assert all(ms > 0 for ms in found.values())
    assert first.by_width == {width: found[f"{width:g}"] / found["original"] for width in (0.25, 1.0)}
    assert first.polished == found["polished"] / found["original"]
    monkeypatch.delattr(speed, "measured")
    assert ask() == first


LATENCIES = speed.Latencies({0.25: 0.3, 0.5: 0.45, 0.75: 0.46, 1.0: 1.0}, polished=0.4)


def test_a_network_as_fast_as_the_subnet_is_the_widest_of_the_fastest_that_are_not_faster() -> None:
    assert LATENCIES.as_fast() == speed.Match(0.75, 0.46, 0.4)


@pytest.mark.parametrize(("limit", "width"), [(0.8, 0.75), (0.455, 0.5), (0.45, 0.5), (1.2, 1.0), (0.2, 0.25)])
def test_a_budget_is_met_by_the_widest_network_that_can_or_by_the_narrowest(limit: float, width: float) -> None:
    assert LATENCIES.widest(limit) == speed.Match(width, LATENCIES.by_width[width], 0.4)
