"""Measuring for real, on this machine; only orders of magnitude are asserted."""

import contextlib
import json
import math
import os
import random
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.profiling import LUT, DeviceConfig, ProfilingError, Store, open_runtime, profile
from autotailor.profiling.measuring.profiler import make_batches
from autotailor.profiling.measuring.programs import Replicas
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.transports import TRANSPORTS, LocalTransport
from ncnn_features import CASES

DEVICE = DeviceConfig.from_section({"name": "test", "precision_target": 0.5, "drift": 10, "min_minutes": 0})
ANCHOR = open_runtime(DEVICE).anchor().id


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits until a pipeline of other tests has measured this machine: locks lie with temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("autotailor.profiling.host.lock.SHARED", tmp_path)


def conv(channels: int, side: int) -> OperatorFeature:
    shape = (1, channels, side, side)
    attributes = freeze_attributes({"pads": (1, 1, 1, 1), "strides": (1, 1), "group": 1})
    weights = ((channels, channels, 3, 3), (channels,))
    return OperatorFeature("Conv", (shape,), (shape,), weights, attributes, (Follower("Relu"),))


def of_every_kind() -> list[OperatorFeature]:
    """One operator for each kind that can be written."""
    image, vector, narrow = (1, 16, 8, 8), (1, 16), (1, 16, 1, 1)
    window = freeze_attributes({"kernel_shape": (2, 2), "strides": (2, 2)})
    unary = [
        "Relu",
        "Sigmoid",
        "Tanh",
        "Mish",
        "Gelu",
        "Swish",
        "LeakyRelu",
        "Clip",
        "HardSwish",
        "HardSigmoid",
        "Square",
    ]
    small = [
        conv(16, 8),
        OperatorFeature("Gemm", (vector,), ((1, 4),), ((4, 16), (4,))),
        OperatorFeature("MatMul", ((1, 8, 16),), ((1, 8, 4),), ((16, 4),)),
        OperatorFeature("TransposedMatMul", ((1, 2, 8, 16), (1, 2, 4, 16)), ((1, 2, 8, 4),)),
        OperatorFeature("MaxPool", (image,), ((1, 16, 4, 4),), (), window),
        OperatorFeature("AveragePool", (image,), ((1, 16, 4, 4),), (), window),
        OperatorFeature("GlobalAveragePool", (image,), (vector,), followers=(Follower("Flatten"),)),
        OperatorFeature("ReduceMean", (image,), (narrow,), (), freeze_attributes({"axes": (2, 3), "keepdims": 1})),
        *(OperatorFeature(kind, (image, image), (image,)) for kind in ("Add", "Sub", "Div")),
        OperatorFeature("Mul", (image, narrow), (image,)),
        *(OperatorFeature(kind, (image,), (image,)) for kind in unary),
        OperatorFeature("Softmax", (vector,), (vector,)),
        OperatorFeature("Add", (image,), (image,), ((1, 16, 1, 1),)),
        OperatorFeature("MatMul", ((1, 4, 4, 16),), ((1, 4, 4, 4),), ((16, 4), (4,))),
        OperatorFeature("Concat", ((1, 8, 16),), ((1, 9, 16),), ((1, 1, 16),), freeze_attributes({"axis": 1})),
        OperatorFeature("Concat", (image, image), ((1, 32, 8, 8),), (), freeze_attributes({"axis": 1})),
        OperatorFeature("Flatten", (image,), ((1, 1024),)),
        OperatorFeature("Reshape", (image,), ((1, 16, 64),)),
        OperatorFeature("Transpose", (image,), ((1, 8, 8, 16),), (), freeze_attributes({"perm": (0, 2, 3, 1)})),
        OperatorFeature("Squeeze", ((1, 1, 8, 8),), ((1, 8, 8),), (), freeze_attributes({"axes": (1,)})),
        OperatorFeature("Unsqueeze", ((1, 8, 8),), ((1, 1, 8, 8),), (), freeze_attributes({"axes": (1,)})),
        OperatorFeature("Split", (image,), ((1, 4, 8, 8), (1, 12, 8, 8)), (), freeze_attributes({"axis": 1})),
        OperatorFeature("Gather", (image,), ((1, 8, 8),), (), freeze_attributes({"axis": 1, "indices": 0})),
        OperatorFeature("ChannelShuffle", (image,), (image,), (), freeze_attributes({"group": 2})),
        OperatorFeature("LayerNormalization", ((1, 8, 16),), ((1, 8, 16),), ((16,), (16,))),
        OperatorFeature("BatchNormalization", (image,), (image,), ((16,),) * 4),
        OperatorFeature("Attention", ((1, 2, 8, 4),) * 3, ((1, 2, 8, 4),)),
    ]
    known = {feature.kind for feature in small}
    return small + list({case.kind: case for case in CASES.values() if case.kind not in known}.values())


def test_every_kind_can_be_measured(tmp_path: Path) -> None:
    from autotailor.profiling.runtimes.ncnn.layers import LAYERS

    operators = of_every_kind()
    assert {feature.kind for feature in operators} == set(LAYERS)
    lut = profile(operators, DEVICE, tmp_path)
    latencies = lut.latencies()
    assert all(0 < latencies[feature.id] < 5 for feature in operators)
    assert latencies.keys() == {feature.id for feature in operators} | {ANCHOR}


def keys(store: Path) -> list[str]:
    """Operators of all visits, in order."""
    opened = Store(store)
    return [record.key for device in opened.devices() for record in opened.records(device.fingerprint.id)]


def test_a_second_run_measures_only_what_is_new(tmp_path: Path) -> None:
    small, large = conv(16, 8), conv(64, 16)
    store = tmp_path / "store"
    first = profile([small], DEVICE, store)
    before = keys(store)
    both = profile([large, small], DEVICE, store, places=[1, 3])
    after = keys(store)
    assert after[: len(before)] == before
    assert small.id not in after[len(before) :]
    assert both.latencies()[large.id] > 3 * first.latencies()[small.id]
    again = profile([large, small], DEVICE, store, places=[1, 3])
    assert keys(store) == after
    assert again == both
    both.write(tmp_path / "lut.csv")
    assert LUT.read(tmp_path / "lut.csv") == both


class SimulatedTransport(LocalTransport):
    """A runner that says at once what it would have measured; it dies when it meets a certain operator."""

    victim = ""
    seconds = 0.1
    noise = 0.0
    slow_batch = -1

    def run(self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | None = None) -> int:
        if command[0] == "sh":  # what sensors it has: none
            return 0
        manifest = json.loads((self.folder / "manifest.json").read_text())
        for index, batch in enumerate(manifest["batches"]):
            names = [program["key"] for program in batch["programs"]]
            if self.victim in names:
                return -11
            for name in names:
                long = (9e6 if name == ANCHOR else 9e4) * (2 if index == self.slow_batch else 1)
                noisy = [long * (1 + self.noise * (-1) ** block) for block in range(8)]
                blocks = {"passes": 9, "short": [1e4] * 8, "long": noisy}
                on_line(json.dumps({"event": "program", "batch": index, "key": name, **blocks}))
            on_line(json.dumps({"event": "batch", "batch": index, "seconds": self.seconds}))
        return 0


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> type[SimulatedTransport]:
    monkeypatch.setitem(TRANSPORTS, "local", SimulatedTransport)
    return SimulatedTransport


def test_a_crash_costs_one_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport]
) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 40)]
    monkeypatch.setattr(simulated, "victim", operators[20].id)
    with pytest.raises(ProfilingError, match=f"1 operators.*{operators[20].id}: the runtime crashed"):
        profile(operators, DEVICE, tmp_path)
    measured = set(keys(tmp_path))
    assert {feature.id for feature in operators} - measured == {operators[20].id}


@pytest.mark.usefixtures("simulated")
def test_an_operator_that_no_program_times_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 5)]
    lost, whole = operators[2].id, Replicas.__call__
    monkeypatch.setattr(Replicas, "__call__", lambda self, keys, new: whole(self, [k for k in keys if k != lost], new))
    with pytest.raises(ProfilingError, match=f"1 operators.*{lost}: no program has timed it"):
        profile(operators, DEVICE, tmp_path)
    assert len(set(keys(tmp_path)) - {lost}) >= 3


def test_the_time_budget_goes_to_the_most_used_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport]
) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 41)]
    brief = replace(DEVICE, max_minutes=0.05)
    places = [i % 7 + 1 for i in range(40)]
    monkeypatch.setattr(simulated, "seconds", 2.0)  # two batches of 16 operators are over 3 s
    with pytest.raises(ProfilingError, match=r"0\.05 minutes were enough for 32 of 40.*missing are 8 Conv.*run again"):
        profile(operators, brief, tmp_path, places=places)
    measured = set(keys(tmp_path))
    left = [use for feature, use in zip(operators, places, strict=True) if feature.id not in measured]
    assert sorted(left) == sorted(places)[:8]
    lut = profile(operators, brief, tmp_path, places=places)
    assert {feature.id for feature in operators} <= set(lut.latencies())
    visits = [key for key in keys(tmp_path) if key != ANCHOR]
    assert sorted(visits) == sorted(feature.id for feature in operators)


def test_new_operators_are_visited_for_a_least_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport]
) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 31)]
    first, second = operators[:15], operators[15:]  # a batch each
    patient = replace(DEVICE, min_minutes=0.05)
    monkeypatch.setattr(simulated, "seconds", 1.1)
    for wanted in (first, first, operators):
        profile(wanted, patient, tmp_path)
    visits = Counter(key for key in keys(tmp_path) if key != ANCHOR)
    assert visits == {feature.id: 3 for feature in first} | {feature.id: 2 for feature in second}  # half of the time


def test_the_least_time_is_no_more_than_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport]
) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 6)]
    monkeypatch.setattr(simulated, "seconds", 1.1)
    profile(operators, replace(DEVICE, min_minutes=60, max_minutes=0.05), tmp_path)
    assert Counter(key for key in keys(tmp_path) if key != ANCHOR) == {feature.id: 3 for feature in operators}


@pytest.mark.parametrize(("noise", "each"), [(0.0, 1), (0.05, 2), (0.8, 2)])
def test_measuring_again_ends_where_it_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport], noise: float, each: int
) -> None:
    """With a noise of 5 %, errors of 0.2 us to 1 us are above the least that counts, though the anchor takes 9 ms."""
    operators = [conv(8 * i, 8) for i in range(1, 21)]
    monkeypatch.setattr(simulated, "noise", noise)
    profile(operators, replace(DEVICE, precision_target=0.01), tmp_path)
    visits = [key for key in keys(tmp_path) if key != ANCHOR]
    assert sorted(visits) == sorted(feature.id for feature in operators for _ in range(each))


def test_without_a_limit_of_time_measuring_ends_where_it_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport]
) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 21)]
    monkeypatch.setattr(simulated, "noise", 0.8)
    profile(operators, replace(DEVICE, precision_target=0.01, max_minutes=math.inf), tmp_path)
    visits = Counter(key for key in keys(tmp_path) if key != ANCHOR)
    assert visits == {feature.id: 2 for feature in operators}


def test_what_was_measured_while_the_machine_had_drifted_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: type[SimulatedTransport]
) -> None:
    operators = [conv(8 * i, 8) for i in range(1, 49)]  # three batches
    monkeypatch.setattr(simulated, "slow_batch", 1)
    profile(operators, replace(DEVICE, drift=0.2), tmp_path)
    visits = [key for key in keys(tmp_path) if key != ANCHOR]
    again = {key for key in visits if visits.count(key) == 2}
    assert {feature.id for feature in operators} == set(visits)
    assert 0 < len(again) <= 16
    assert len(visits) == len(operators) + len(again)


class Mortal(SimulatedTransport):
    """Its whole process is killed within milliseconds of a random batch, not of the first."""

    rng = random.Random()

    def run(self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | None = None) -> int:
        batch = self.rng.randint(1, 8)

        def and_die(text: str) -> None:
            line = json.loads(text)
            if line["event"] == "batch" and line["batch"] == batch:
                threading.Timer(self.rng.random() * 0.005, os.kill, (os.getpid(), signal.SIGKILL)).start()
            on_line(text)

        return super().run(command, and_die, timeout)


def test_killed_at_random_nothing_is_measured_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators = [conv(8, i) for i in range(1, 193)]  # 12 batches
    monkeypatch.setitem(TRANSPORTS, "local", Mortal)
    kills = 0
    for seed in range(30):
        monkeypatch.setattr(Mortal, "rng", random.Random(seed))
        if (process := os.fork()) == 0:
            with contextlib.suppress(Exception):
                profile(operators, DEVICE, tmp_path)
                os._exit(0)
            os._exit(1)
        status = os.waitpid(process, 0)[1]
        if status == 0:
            break
        assert os.WIFSIGNALED(status)
        kills += 1
    visits = [key for key in keys(tmp_path) if key != ANCHOR]
    assert kills > 1
    assert sorted(visits) == sorted(feature.id for feature in operators)


def test_a_runner_that_ends_early_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.profiling.runtimes.runner.loop.__file__", str(tmp_path / "missing.py"))
    with pytest.raises(ProfilingError, match="exit code 2"):
        profile([conv(8, 8)], DEVICE, tmp_path)


def test_batches_are_bounded_in_number_memory_and_work() -> None:
    small = [Program(str(i), "", (), "c2", memory_mb=1.0) for i in range(40)]
    large = [Program(f"l{i}", "", (), "c2", memory_mb=700.0) for i in range(3)]
    slow = [Program(f"s{i}", "", (), "c2", macs_m=3000.0) for i in range(5)]
    batches = make_batches([*small, *large, *slow], 0.1)
    assert [program for batch in batches for program in batch.programs] == [*small, *large, *slow]
    assert max(len(batch.programs) for batch in batches) <= 16
    assert max(sum(p.memory_mb for p in batch.programs) for batch in batches) <= 1024
    assert max(sum(p.macs_m for p in batch.programs) for batch in batches) <= 8000


def test_an_operator_in_a_setting_that_the_device_does_not_have_is_refused_before_anything_runs(tmp_path: Path) -> None:
    device = DeviceConfig.from_section({"name": "board", "transport": "ssh", "address": "nowhere"})
    own = replace(conv(16, 8), setting=(("precision", "int8"),))
    with pytest.raises(ProfilingError, match=r"1 operators run in settings of their own, first \w+ \(precision int8\)"):
        profile([conv(16, 8), own], device, tmp_path)
