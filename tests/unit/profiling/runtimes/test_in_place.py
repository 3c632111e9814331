"""Operators timed where they stand: the network that is written, the arithmetic, and measuring for real."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import autotailor
from autotailor.profiling import DeviceConfig, Store, open_runtime, profile
from autotailor.profiling.measuring.manifest import ANCHOR_SHARE
from autotailor.profiling.networks.validation import input_shape
from autotailor.profiling.records.differential import Walk, kernel_overhead, steady, step_latencies
from autotailor.profiling.records.events import ProgramTimed, parse
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.ncnn.claims import claims
from autotailor.profiling.runtimes.reference_network import reference_operators
from autotailor.profiling.runtimes.runner import loop as runner_loop

DEVICE = DeviceConfig.from_section({"name": "test", "precision_target": 0.5, "drift": 10, "min_minutes": 0})
RUNTIME = open_runtime(DEVICE)


def program(net: autotailor.SuperNet, subnet: autotailor.SubNet) -> Program:
    written = RUNTIME.in_place(subnet.id, net.sequence(subnet, RUNTIME.fusion), input_shape(net, subnet)[1:], ())
    assert written is not None
    return written


def test_the_written_network_has_the_layers_that_pnnx_writes(any_net: autotailor.SuperNet, tmp_path: Path) -> None:
    for subnet in (any_net.largest(), any_net.smallest()):
        sequence = any_net.sequence(subnet, RUNTIME.fusion)
        written = program(any_net, subnet)
        path = tmp_path / "written.param"
        path.write_text(written.param or "")
        bill = claims(path, [operator.feature for operator in sequence], input_shape(any_net, subnet))
        assert bill.complete, (bill.unclaimed, bill.idle)
        assert sorted(key for key, _ in written.steps) == sorted(operator.feature.id for operator in sequence)


def test_each_step_runs_one_operator(resnet_net: autotailor.SuperNet) -> None:
    written = program(resnet_net, resnet_net.smallest())
    lines = [line.split() for line in (written.param or "").splitlines()[2:]]
    computing = [line for line in lines if line[0] not in {"Input", "Split"}]
    assert len(written.steps) == len(computing)
    assert written.steps[-1][1] == written.long
    assert len({blob for _, blob in written.steps}) == len(written.steps)


@pytest.mark.parametrize(("seconds", "shares"), [(4.0, (0.07, 0.13)), (0.01, (0.8, 1.0))])
def test_the_anchor_has_its_share_of_a_pass(
    seconds: float, shares: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = {"anchor": 1.0} | {f"network {i}": seconds for i in range(16)}
    now, seen = 0.0, list[str]()
    monkeypatch.setattr(runner_loop, "time", SimpleNamespace(perf_counter=lambda: now))
    for name in runner_loop.turns(list(costs), ANCHOR_SHARE):  # type: ignore[arg-type,assignment]
        seen.append(str(name))
        now += costs[str(name)]
    assert [name for name in seen if name != "anchor"] == list(costs)[1:]
    assert seen[0] == "anchor"
    assert shares[0] <= seen.count("anchor") / now <= shares[1]


def test_without_an_anchor_all_programs_run_alike_often() -> None:
    assert list(runner_loop.turns(["a", "b", "c"], 0.0)) == ["a", "b", "c"]  # type: ignore[list-item]


@pytest.mark.parametrize(("lengths", "run_ms", "untimed"), [(1, 0.4, 5), (1, 30.0, 1), (2, 0.1, 1)])
def test_a_network_settles_before_it_is_timed(
    lengths: int, run_ms: float, untimed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ran, walked = 0.0, list[int](), list[int]()

    def run(which: int) -> int:
        nonlocal now
        now += run_ms / 1e3
        ran.append(which)
        return len(ran)

    monkeypatch.setattr(runner_loop, "time", SimpleNamespace(perf_counter=lambda: now))
    network = SimpleNamespace(lengths=lengths, run=run, walk=lambda: walked.append(len(ran)))
    timed = runner_loop.Timed("network", network, {}, has_steps=True)  # type: ignore[arg-type]
    runner_loop.visit(timed, 0, {"runs": 3, "walks": 4, "settle_ms": 1.8}, np.ones(8, dtype=np.float32))
    assert timed.times[0] == [untimed + 1, untimed + 2, untimed + 3]
    assert walked == [untimed + 3] * 12


def test_what_slows_a_whole_walk_down_is_taken_out() -> None:
    rng = np.random.default_rng(0)
    usual = np.geomspace(5e3, 5e6, 40)[:, None]
    noise = rng.normal(1, 0.01, (40, 8))
    noise[3, 5] = 20.0  # an interruption hits one step
    slowness = np.array([1.0, 1.3, 0.9, 1.0, 2.0, 1.0, 1.1, 1.0])
    found = steady((usual * noise * slowness).tolist())
    np.testing.assert_allclose(found / usual, noise * slowness.mean(), rtol=0.02)


def test_steps_too_short_for_the_clock_say_nothing_of_slowness() -> None:
    assert steady([[0.0, 0.0, 0.0]]).tolist() == [[0.0, 0.0, 0.0]]
    found = steady([[0.0, 1e3, 0.0], [5e3, 1e4, 5e3]])
    np.testing.assert_allclose(found, [[0.0, 2e3 / 3, 0.0], [2e4 / 3] * 3])


def test_what_timing_costs_is_taken_off_for_each_kernel() -> None:
    steps = (("a", "x"), ("b", "y"), ("a", "z"), ("gone", "z"))
    network = Program("n", "", ((3, 8, 8),), "z", steps=steps)
    latencies = np.array([[30.0, 30.0], [10.0, 20.0], [34.0, 34.0], [0.0, 0.0]]) * 1e3
    kernels = np.array([1, 3, 2, 0])
    walk = Walk(latencies + 5e3 * kernels[:, None], kernels, latencies.sum(axis=0) + 2e3)
    overhead = kernel_overhead([walk], harness_ms=2e-3)
    assert overhead == pytest.approx(5e-3)
    found = step_latencies(network, walk, overhead)
    assert found.keys() == {"a", "b", "gone"}
    np.testing.assert_allclose(found["a"], [0.032, 0.032])
    np.testing.assert_allclose(found["b"], [0.010, 0.020])
    np.testing.assert_allclose(found["gone"], 0.0, atol=1e-12)


def test_a_step_is_one_kernel_where_the_runner_does_not_say_more() -> None:
    line = {"event": "program", "batch": 0, "key": "n", "passes": 2, "steps": [[5e3, 5e3], [7e3, 7e3]], "long": [1e4]}
    event, of_two = parse(json.dumps(line)), parse(json.dumps({**line, "kernels": [0, 2]}))
    assert isinstance(event, ProgramTimed)
    assert isinstance(of_two, ProgramTimed)
    assert Walk.of(event).kernels.tolist() == [1, 1]
    assert Walk.of(of_two).kernels.tolist() == [0, 2]


def test_one_disturbed_network_does_not_change_what_timing_costs() -> None:
    rng = np.random.default_rng(0)
    networks = []
    for place in range(9):
        latencies = rng.uniform(1e4, 1e6, (20, 1)) * rng.normal(1, 0.001, 8)
        slow = 2e6 if place == 4 else 0.0
        networks.append(Walk(latencies + 5e3, np.ones(20, dtype=np.int64), latencies.sum(axis=0) + slow))
    assert kernel_overhead(networks, 0.0) == pytest.approx(5e-3, abs=5e-4)


def test_operators_of_a_space_are_measured_in_subnets_that_hold_them(
    resnet_net: autotailor.SuperNet, tmp_path: Path
) -> None:
    judged = (resnet_net.largest(), resnet_net.smallest())
    wanted = list(dict.fromkeys(f for s in judged for f in resnet_net.operators(s, RUNTIME.fusion)))
    lut = profile(wanted, DEVICE, tmp_path, net=resnet_net, avoid=judged)
    rows = {row.feature.id: row for row in lut}
    assert rows.keys() >= {feature.id for feature in wanted}
    known = {key: row.latency_ms for key, row in rows.items()}
    assert all(0 < known[feature.id] < 5 for feature in wanted)
    weighed = [rows[feature.id].resident_weight_mb for feature in wanted if feature.kind == "Conv"]
    assert max(weight for weight in weighed if weight is not None) > 0
    store = Store(tmp_path)
    device = store.devices()[0].fingerprint.id
    before = len(store.records(device))
    profile(wanted, DEVICE, tmp_path, net=resnet_net, avoid=judged)
    assert len(store.records(device)) == before


def test_a_runtime_that_cannot_tell_operators_apart_says_so(resnet_net: autotailor.SuperNet) -> None:
    runtime = open_runtime(DeviceConfig.from_section({"name": "test", "runtime": "torch"}))
    subnet = resnet_net.smallest()
    assert runtime.in_place(subnet.id, resnet_net.sequence(subnet, runtime.fusion), (3, 32, 32), ()) is None


def test_the_anchor_is_a_network_that_ncnn_runs(tmp_path: Path) -> None:
    feature = RUNTIME.anchor()
    anchor = RUNTIME.replicas(feature)
    assert anchor.key == feature.id
    assert anchor.short is None
    path = tmp_path / "reference.param"
    path.write_text(anchor.param or "")
    features = [operator.feature for operator in reference_operators()]
    assert claims(path, features, (1, *anchor.inputs[0])).complete
    macs = sum(np.prod(f.weights[0][1:]) * np.prod(f.outputs[0]) for f in features if f.weights)
    assert 1.0e8 < macs < 1.2e8
