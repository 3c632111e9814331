"""Driving a pool through phases of load."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from autotailor.serving import PoolError, Service
from autotailor.serving.demo.burden import Burdens
from autotailor.serving.demo.drive import drive, phases, pictures_for, unloaded_ms
from pools import tiny_pool
from served import serve_binary


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    serve_binary()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service.of(tiny_pool(tmp_path / "pool").folder, 5.0) as made:
        yield made


def test_each_phase_has_its_burdens_and_its_time(service: Service) -> None:
    with Burdens(30) as burdens:
        samples = []
        for sample in drive(service, burdens, phases(0.6, (0, 2, 1)), pictures_for(service)):
            assert len(burdens.processes) == sample.burdens
            samples.append(sample)
        assert burdens.processes == []
    assert [count for count, _ in groupby(sample.burdens for sample in samples)] == [0, 2, 1]
    assert samples[0].seconds < 0.1
    assert all(before.seconds < after.seconds for before, after in pairwise(samples))
    assert service.status()["counters"]["inferences"] == len(samples)


def test_a_rate_leaves_pauses(service: Service) -> None:
    with Burdens(30) as burdens:
        samples = list(drive(service, burdens, phases(0.5, (0,)), pictures_for(service), rate=20.0))
    assert 5 <= len(samples) <= 10
    assert all(sample.seconds >= number / 20 for number, sample in enumerate(samples))


def test_the_largest_member_is_timed_alone(tmp_path: Path) -> None:
    with Service.of(tiny_pool(tmp_path / "pool").folder, 1e-6) as service:
        assert unloaded_ms(service, pictures_for(service)[0]) > 0
        counters = service.status()["counters"]
    assert counters["by_member"]["member_02"] >= 60
    assert counters["inferences"] == sum(counters["by_member"].values())


def test_a_member_that_cannot_be_loaded_ends_the_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.serving.demo.drive.WAIT_S", 0.2)
    pool = tiny_pool(tmp_path / "pool")
    with Service.of(pool.folder, 1e-6) as service:
        with (pool.folder / "weights.bin").open("r+b") as stream:
            stream.truncate(4)
        with pytest.raises(PoolError, match=r"member_02 is not loaded within 0\.2 s"):
            unloaded_ms(service, pictures_for(service)[0])


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_plan_takes_time(seconds: float) -> None:
    with pytest.raises(PoolError, match="demonstration"):
        phases(seconds)
