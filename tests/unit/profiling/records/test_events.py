"""Events of the runner. A device may print anything: what makes no sense is measured again, and never stored."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import DeviceConfig, ProfilingError, Record, Session
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.events import (
    Asked,
    BatchDone,
    Event,
    Memory,
    PeakMemory,
    ProgramFailed,
    ProgramTimed,
    ProgramWeighed,
    StrangeLineError,
    parse,
)
from autotailor.profiling.records.limits import refusal, refusal_of_blocks
from autotailor.profiling.records.machine_state import MachineState
from autotailor.profiling.records.reading import Reading
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.wheel import WheelRuntime
from autotailor.profiling.transports import base as transport_lines

SECTION = {"name": "test", "warmup": 1, "evict_mb": 0, "hang_minutes": 1}
FEATURES = [OperatorFeature("Relu", ((1, 8, side, side),), ((1, 8, side, side),)) for side in (4, 8)]
Lines = list[dict[str, Any]]


@dataclass
class Bench:
    """A session on this machine whose runner prints what a test says, in turn.

    Attributes:
        session: open.
        folder: for what is printed.
        sound: what a real runner has printed of two operators.
    """

    session: Session
    folder: Path
    sound: Lines

    def measure(self, *said: bytes) -> tuple[list[Record], dict[str, str]]:
        """Measures the two operators while the runner prints one of these at each start, the last one for ever."""
        records: list[Record] = []
        starts = iter(said)
        last = [said[-1]]

        def runner(_: str) -> list[str]:
            (self.folder / "said").write_bytes(next(starts, last[0]))
            return ["cat", str(self.folder / "said")]

        self.session.runtime.runner = runner  # type: ignore[method-assign]
        programs = tuple(self.session.runtime.replicas(feature) for feature in FEATURES)
        return records, self.session.measure([Batch(programs, 0.01)], records.extend)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Session(DeviceConfig.from_section(SECTION)) as session:
        assert isinstance(session.runtime, WheelRuntime)
        said: list[str] = []
        programs = tuple(session.runtime.replicas(feature) for feature in FEATURES)
        path = session.send([Batch(programs, 0.01)], session._helpers, session.runtime.settings())
        assert session.transport.run(session.runtime.runner(path), said.append) == 0
        sound = [json.loads(line) for line in said if line.startswith("{")]
        yield Bench(session, tmp_path_factory.mktemp("bench"), sound)


PROGRAM = {"event": "program", "batch": 1, "key": "a", "passes": 4, "short": [1.0, 2], "long": [3.0, 4.0]}


def test_each_kind_of_line_becomes_its_event() -> None:
    lines: dict[str, Event] = {
        json.dumps(PROGRAM | {"workspace_mb": 0.5}): ProgramTimed(
            1, "a", 4, long=(3.0, 4.0), short=(1.0, 2), memory=Memory(workspace_mb=0.5)
        ),
        '{"event": "weighed", "batch": 0, "key": "b", "weights_mb": 2}': ProgramWeighed(0, "b", Memory(2.0)),
        '{"event": "failed", "batch": 0, "key": "b", "reason": " no\\nlayer "}': ProgramFailed(0, "b", "no layer"),
        '{"event": "batch", "batch": 2, "seconds": 0.5, "before": {"khz": {"0": 7}}}': BatchDone(
            2, 0.5, (MachineState({"0": 7.0}, {}),)
        ),
        '{"event": "memory", "key": "b", "loading_mb": 3, "running_mb": 2}': PeakMemory(3.0, 2.0),
    }
    assert {text: parse(text) for text in lines} == lines


@pytest.mark.parametrize("text", ["", "a library", "{}", "{broken", "[1]", '{"event": 1}', '{"event": "load", "x": 1}'])
def test_a_line_that_nobody_needs_is_no_event(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"batch": 2}, "batch 2 of 2"),
        ({"batch": None}, "batch None"),
        ({"key": "of another run"}, "nothing that was asked for"),
        ({"key": "step"}, "nothing that was asked for"),  # a step is never timed by itself
        ({"short": []}, "no short times"),
        ({"key": "whole"}, "no times of 2 steps"),
        ({"steps": [[1.0], [1.0, 2.0]]}, "several numbers of blocks"),
        ({"steps": [[1.0], [1.0]], "kernels": [0, 0]}, "without a kernel"),
    ],
)
def test_an_event_about_nothing_that_was_asked_is_refused(change: dict[str, object], reason: str) -> None:
    steps = (("step", "x"), ("other", "y"))
    programs = (Program("a", "", (), "out", short="in"), Program("whole", "", (), "out", steps=steps))
    asked = Asked([Batch((), 0.0), Batch(programs, 0.0)])
    assert asked.event(json.dumps(PROGRAM)) == parse(json.dumps(PROGRAM))
    with pytest.raises(StrangeLineError, match=reason):
        asked.event(json.dumps(PROGRAM | change))


def test_a_runner_that_is_started_again_counts_from_the_first_batch_that_is_left() -> None:
    anchor, sink, harness = (Program(key, "", (), "out") for key in ("anchor", "sink", "harness"))
    batches = [Batch((Program(key, "", (), "out"),), 0.0) for key in ("a", "b")]
    records: list[Record] = []
    reading = Reading("device", "f", (anchor, sink, harness), batches, records.extend)

    def say(batch: int, key: str) -> None:
        for program, ns in ((key, 5e6), ("anchor", 3e6), ("sink", 1e6), ("harness", 1e6)):
            reading.take(json.dumps(PROGRAM | {"batch": batch, "key": program, "short": [], "long": [ns] * 8}))
        reading.take(json.dumps({"event": "batch", "batch": batch, "seconds": 1}))

    say(0, "a")
    assert reading.restart() == batches[1:]
    say(0, "b")
    assert (reading.finished, reading.strange, reading.again) == (2, 0, {})
    assert [record.key for record in records] == ["anchor", "a", "anchor", "b"]
    assert [record.blocks[0] for record in records] == pytest.approx([2.0, 4.0, 2.0, 4.0])


def printed(lines: Lines) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def with_values(lines: Lines, key: str, **values: object) -> Lines:
    """The lines, with other values in the line about one program."""
    return [line | values if line.get("key") == key and line["event"] == "program" else line for line in lines]


def test_sound_lines_are_taken(bench: Bench) -> None:
    records, failures = bench.measure(b"a library says: {hello}\n{}\n{broken\n" + printed(bench.sound))
    assert failures == {}
    assert {record.key for record in records} == {feature.id for feature in FEATURES} | {bench.session.anchor.key}


BAD: dict[str, dict[str, object]] = {
    "NaN": {"long": [math.nan] * 8},
    "negative": {"long": [-1.0] * 8},
    "infinite": {"short": [math.inf] * 8},
    "out of range": {"long": [1e300] * 8},
    "no number": {"long": ["fast"] * 8},
    "nothing": {"long": []},
    "no list": {"long": 7},
    "no passes": {"passes": 0},
    "half a pass": {"passes": 1.5},
    "memory of NaN": {"workspace_mb": math.nan},
    "huge": {"passes": 10**400},
}


@pytest.mark.parametrize("name", BAD)
def test_a_line_that_makes_no_sense_is_measured_again(
    bench: Bench, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    key = FEATURES[0].id
    records, failures = bench.measure(printed(with_values(bench.sound, key, **BAD[name])), printed(bench.sound))
    assert failures == {}
    assert [record.key for record in records].count(key) == 1
    assert all(refusal(vars(record)) is refusal_of_blocks(record.blocks) is None for record in records)
    assert "1 lines of its runner make no sense" in caplog.text
    assert "1 programs are measured again" in caplog.text


def test_what_never_makes_sense_is_given_up_and_the_others_stay(bench: Bench) -> None:
    bad, good = (feature.id for feature in FEATURES)
    records, failures = bench.measure(printed(with_values(bench.sound, bad, long=[math.nan] * 8)))
    assert failures.keys() == {bad}
    assert "makes no sense" in failures[bad]
    assert good in {record.key for record in records}
    assert bad not in {record.key for record in records}


@pytest.mark.parametrize("helper", ["anchor", "sink", "harness"])
def test_a_helper_that_makes_no_sense_costs_its_batch(bench: Bench, helper: str) -> None:
    key = bench.session.anchor.key if helper == "anchor" else helper
    broken = printed(with_values(bench.sound, key, long=[math.nan] * 8))
    records, failures = bench.measure(broken, printed(bench.sound))
    assert failures == {}
    assert {feature.id for feature in FEATURES} <= {record.key for record in records}
    records, failures = bench.measure(broken)
    assert (records, failures.keys()) == ([], {feature.id for feature in FEATURES})


def test_an_anchor_that_takes_no_time_is_not_believed(bench: Bench) -> None:
    records, failures = bench.measure(
        printed(with_values(bench.sound, bench.session.anchor.key, long=[0.0] * 8, short=[0.0] * 8))
    )
    assert (records, len(failures)) == ([], 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [line for line in lines if line["event"] != "batch"],
        lambda lines: [line | {"batch": 7} for line in lines],
        lambda lines: [line | {"batch": True} for line in lines],
        lambda lines: [line | {"seconds": "long"} for line in lines],
        lambda lines: [line | {"key": ["x"]} for line in lines],
        lambda lines: [],
    ],
)
def test_lines_of_no_batch_are_not_believed(bench: Bench, change: Callable[[Lines], Lines]) -> None:
    records, failures = bench.measure(printed(change(bench.sound)))
    assert (records, failures.keys()) == ([], {feature.id for feature in FEATURES})


def test_a_huge_line_is_cut_and_what_follows_is_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_lines, "LONGEST", 100_000)
    huge = b'{"event": "program", "x": "' + b"x" * 5_000_000 + b'"}\n'
    records, failures = bench.measure(huge + printed(bench.sound))
    assert failures == {}
    assert len(records) == 3


NASTY = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, -1, 0, 1e308, 10**40, True, None, "", [], {}, [[]], "x" * 5000]),
    st.floats(),
    st.integers(),
    st.lists(st.floats(), max_size=9),
    st.text(max_size=10),
)
NAMES = (
    "event",
    "batch",
    "key",
    "passes",
    "short",
    "long",
    "seconds",
    "reason",
    "weights_mb",
    "workspace_mb",
    "before",
)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("value"), st.integers(0, 40), st.sampled_from(NAMES), NASTY),
        st.tuples(st.just("drop"), st.integers(0, 40), st.just(""), st.none()),
        st.tuples(st.just("double"), st.integers(0, 40), st.just(""), st.integers(0, 40)),
        st.tuples(st.just("fail"), st.integers(0, 40), st.just(""), st.text(max_size=20)),
        st.tuples(st.just("bytes"), st.integers(0, 20_000), st.just(""), st.binary(max_size=30)),
    ),
    min_size=1,
    max_size=4,
)


def edited(sound: Lines, edits: list[tuple[str, int, str, Any]]) -> bytes:
    """What a device prints that is not well."""
    lines = [dict(line) for line in sound]
    splices = []
    for kind, number, name, value in edits:
        index = number % max(1, len(lines))
        if kind == "value" and lines:
            lines[index][name] = value
        elif kind == "drop" and lines:
            lines.pop(index)
        elif kind == "double" and lines:
            lines.insert(value % len(lines), lines[index])
        elif kind == "fail" and lines:
            lines[index] = {"event": "failed", "batch": 0, "key": lines[index].get("key"), "reason": value}
        elif kind == "bytes":
            splices.append((number, value))
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for number, value in splices:
        start = number % max(1, len(data))
        data = data[:start] + value + data[start + len(value) // 2 :]
    return data


def listen(bench: Bench, edits: list[list[tuple[str, int, str, Any]]]) -> None:
    """Whatever a device prints, only numbers that make sense come of it, or an error that says what is wrong."""
    records: list[Record] = []
    with suppress(AutoTailorError):
        records, failures = bench.measure(*(edited(bench.sound, each) for each in edits))
        assert failures.keys() <= {feature.id for feature in FEATURES} | {"sink", "harness", bench.session.anchor.key}
    for record in records:
        assert refusal(vars(record)) is None
        assert refusal_of_blocks(record.blocks) is None


@settings(
    max_examples=99, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits=st.lists(EDITS, min_size=1, max_size=3))
def test_whatever_a_device_prints_is_sensible_or_left(bench: Bench, edits: list[Any]) -> None:
    listen(bench, edits)


@pytest.mark.sweep
@settings(
    max_examples=1000,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(edits=st.lists(EDITS, min_size=1, max_size=3))
def test_whatever_a_device_prints_a_thousand_times_is_sensible_or_left(bench: Bench, edits: list[Any]) -> None:
    listen(bench, edits)


@pytest.mark.parametrize(
    "said", [b'{"event": "memory", "loading_mb": NaN, "running_mb": 1}\n', b'{"event": "memory"}\n']
)
def test_memory_that_makes_no_sense_is_not_believed(bench: Bench, said: bytes) -> None:
    (bench.folder / "said").write_bytes(said)
    bench.session.runtime.runner = lambda _: ["cat", str(bench.folder / "said")]  # type: ignore[method-assign]
    with pytest.raises(ProfilingError, match="was not measured"):
        bench.session.weigh(bench.session.runtime.harness())
