"""Members for a load: what a server's status says, the front under it, and the pool with more members."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotailor
import finished_runs
from autotailor import data, prediction, profiling, search
from autotailor.accuracy import CalibrationConfig
from autotailor.ir.space.subnet import stack
from autotailor.pool import making
from autotailor.pool.classes import Rates
from autotailor.pool.config import PoolConfig
from autotailor.pool.under_load import MARGIN, Load, extend, find_members
from autotailor.prediction import Measured
from autotailor.serving import PoolError, Replay
from autotailor.serving.files import open_pool
from replays import member_of

SEARCH = search.SearchConfig(population=20, generations=4)
STATUS = {
    "settings": {"deadline_ms": 11.0, "rate": 0.0, "quota": None},
    "machine": {},
    "load": {
        "slowdown_compute": 1.0,
        "slowdown_memory": 3.0,
        "slowdown_fixed": 2.0,
        "forecast": 1.5,
        "quantile": 1.2,
        "waiting": 0.25,
    },
}


def test_the_margin_is_the_one_with_which_servers_go_up() -> None:
    members = [member_of(70.0 + number, (1.0 + number, 0.0, 0.0)) for number in range(2)]
    for deadline, member in ((1.99 * (1 + MARGIN), 0), (2.01 * (1 + MARGIN), 1)):
        assert Replay(members, deadline_ms=deadline).choose(0).member == member


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_runs.make(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def run(folder: Path) -> making.Run:
    net = autotailor.load(folder.parent / "supernet.pt")
    return making.Run(
        net,
        search.Front.read(folder / "pareto.csv", net.space),
        prediction.read_accuracy(folder / "accuracy.json", net.macs()),
        {},
        profiling.LUT.read(folder / "lut.csv"),
        profiling.DeviceConfig("host"),
    )


@pytest.fixture(scope="module")
def export(run: making.Run, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    section = json.loads((folder / "configuration.json").read_text())
    splits = data.load(section["data"])
    work, module = tmp_path_factory.mktemp("work"), run.net.module().eval()
    return making.exporter(run.net, module, splits, CalibrationConfig(images=32), work)


def latencies(run: making.Run, subnets: tuple[autotailor.SubNet, ...], load: Load) -> np.ndarray:
    """What the classes of the pool say that SubNets take under a load."""
    unloaded, fusion = run.lut.latencies(), profiling.fusion_rules(run.device)
    rates = Rates.of([row.feature for row in run.lut], unloaded)
    found = []
    for subnet in subnets:
        split = rates.split_all([each.feature for each in run.net.sequence(subnet, fusion)], unloaded)
        found.append(load.stretch * np.dot(load.slowdown, split))
    return np.array(found)


@pytest.mark.parametrize(
    ("settings", "machine", "threads", "limit"),
    [
        ({}, {}, 1, 10.0),
        ({"rate": 200.0}, {}, 4, 5.0 / 1.1),
        ({"rate": 200.0, "quota": 0.1}, {}, 1, 2.25 * 0.5 / 1.1),
        ({"rate": 200.0}, {"quota": 0.2}, 1, 2.25 * 1.0 / 1.1),
        ({"rate": 200.0}, {"quota": 0.4}, 4, 2.25 * 0.5 / 1.1),
        ({}, {"quota": 0.2}, 1, 10.0),
    ],
    ids=["deadline", "rate", "quota", "the machine's quota", "a quota that threads share", "a quota without a rate"],
)
def test_a_member_must_meet_what_the_server_asks_for(
    settings: dict[str, float], machine: dict[str, float], threads: int, limit: float
) -> None:
    status = {**STATUS, "settings": {**STATUS["settings"], **settings}, "machine": machine}
    load = Load.of_status(status, threads)
    assert (load.slowdown, load.stretch) == ((1.0, 3.0, 2.0), pytest.approx(1.5 * 1.2 * 1.25))
    assert load.limit_ms == pytest.approx(limit)


def test_no_sampled_subnet_that_meets_the_deadline_is_better_than_the_best_found(run: making.Run) -> None:
    load = Load((1.0, 4.0, 2.0), 1.5, 1.0)
    rng = random.Random(0)
    drawn = tuple(run.net.sample(rng) for _ in range(300))
    took = latencies(run, drawn, load)
    load = replace(load, limit_ms=float(np.median(took)))
    found = find_members(run, load, SEARCH, count=4)
    assert 2 <= len(found) <= 4
    assert latencies(run, found, load).max() <= load.limit_ms * (1 + 1e-9)
    best = run.accuracy.metric.predict(stack(drawn))[took <= load.limit_ms].max()
    assert run.accuracy.metric.predict(stack(found)).max() >= best - 1e-9


def test_another_load_has_another_front(run: making.Run) -> None:
    fronts = []
    for slowdown in ((8.0, 1.0, 1.0), (1.0, 8.0, 1.0)):
        limit = float(latencies(run, (run.net.largest(),), Load(slowdown, 1.0, 1.0))[0]) / 2
        fronts.append(find_members(run, Load(slowdown, 1.0, limit), SEARCH, count=1))
    assert fronts[0] != fronts[1]


def test_a_deadline_that_no_subnet_meets_is_said_with_one_that_is_met(run: making.Run) -> None:
    for slowdown in (2.0, 2.3, 2.7, 3.1):
        load = Load((slowdown,) * 3, 1.0, 1.0)
        fastest = float(latencies(run, (run.net.smallest(),), load)[0])
        with pytest.raises(PoolError, match=f"the fastest takes {fastest:.3g} ms: raise the deadline to") as refused:
            find_members(run, replace(load, limit_ms=fastest * 0.9), SEARCH, count=4)
        said = re.search(r"the deadline to (\S+) ms", str(refused.value))
        assert said is not None
        assert 1.1 * fastest <= float(said[1]) <= 1.102 * fastest
        assert find_members(run, replace(load, limit_ms=float(said[1]) / 1.1), SEARCH, count=1)


@pytest.mark.sweep  # tests/unit/commands/runtime/test_search.py walks the same within a command
def test_a_pool_gets_the_members_beside_its_own(run: making.Run, export: Callable[[Any], Any], tmp_path: Path) -> None:
    config, target = PoolConfig(members=3), tmp_path / "pool"
    origin = making.origin_of("resnet_digits", run.device, config)
    slow = replace(run, front=run.front.take(np.arange(len(run.front))[-3:]))

    def measure(members: Any) -> list[profiling.Measurement]:
        return [profiling.Measurement(each.subnet.id, 7.0 + number, 0.5, 3, 7.0) for number, each in enumerate(members)]

    evaluated: list[str] = []

    def evaluate(subnets: Sequence[Any]) -> dict[str, Measured]:
        evaluated.extend(subnet.id for subnet in subnets)
        return {subnet.id: Measured.alone(50.0 + len(evaluated), 2.0) for subnet in subnets}

    before = making.make_pool(target, slow, origin, config, export, measure, evaluate)
    load = Load((1.0, 3.0, 2.0), 1.2, 1.0)
    load = replace(load, limit_ms=0.7 * float(latencies(run, slow.front.subnets, load).min()))
    found = find_members(run, load, SEARCH, count=2)
    subnets = extend(target, run, load, found, origin, export, evaluate)
    own = [each["subnet"] for each in before["members"]]
    assert [subnet.id for subnet in subnets] == [*own, *(subnet.id for subnet in found)]
    after = json.loads((target / "pool.json").read_text())
    by_subnet = {each["subnet"]: each for each in after["members"]}
    for each in before["members"]:  # what was measured stays
        assert by_subnet[each["subnet"]]["latency_ms"] == each["latency_ms"]
        assert by_subnet[each["subnet"]]["accuracy"] == each["accuracy"]
        assert each["accuracy"]["from"] == "evaluation"
    assert len(evaluated) == len(set(evaluated))
    assert all(by_subnet[subnet.id]["latency_ms"]["measured"] is None for subnet in found)
    assert after["front"] == before["front"]
    assert [each["subnets"] for each in after["searched_under_load"]] == [[subnet.id for subnet in found]]
    assert len(open_pool(target).index.members) == len(subnets)
    with pytest.raises(PoolError, match=r"are members of .* already, so that a search adds none"):
        extend(target, run, load, found, origin, export)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(PoolError, match="make the pool with the rule pool first"):
        extend(other, run, load, found, origin, export)
