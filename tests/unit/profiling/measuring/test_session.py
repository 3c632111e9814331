"""A runner that hangs is ended: the loop and the runtime are the real ones."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import DeviceConfig, Record, Session
from autotailor.profiling.errors import OverdueError
from autotailor.profiling.measuring import pace
from autotailor.profiling.records.batch import Batch

SECTION = {"name": "test", "warmup": 1, "evict_mb": 0}
FEATURES = [OperatorFeature("Relu", ((1, 8, side, side),), ((1, 8, side, side),)) for side in (4, 8)]

HANGING = """
import importlib.util, json, sys, threading, time
spec = importlib.util.spec_from_file_location("real", {real!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
clear = real.clear

def beat():
    while True:
        print(json.dumps({{"event": "alive", "batch": 0}}), flush=True)
        time.sleep(0.1)

def load(program, settings):
    if program["key"] in {keys!r}:
        threading.Thread(target=beat, daemon=True).start()
        time.sleep(1000)
    return real.load(program, settings)
"""


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Opens a session whose runner hangs, with a beat, over some programs."""
    monkeypatch.setattr(pace, "FACTOR", 0.1)
    opened = []

    def over(*keys: str) -> Session:
        session = Session(DeviceConfig.from_section(SECTION | {"hang_minutes": 0.1}))
        session.__enter__()
        opened.append(session)
        real = session.runtime.runner
        *_, backend, _ = real("manifest")
        (tmp_path / "hanging.py").write_text(HANGING.format(real=backend, keys=keys))
        shutil.copy(backend, tmp_path)
        command = lambda path: [*real(path)[:-2], str(tmp_path / "hanging.py"), path]  # noqa: E731
        session.runtime.runner = command  # type: ignore[method-assign]
        return session

    yield over
    for session in opened:
        session.__exit__()


def test_an_operator_that_hangs_costs_only_itself(
    hanging: Callable[..., Session], caplog: pytest.LogCaptureFixture
) -> None:
    session, records = hanging(FEATURES[0].id), list[Record]()
    programs = tuple(session.runtime.replicas(feature) for feature in FEATURES)
    failures = session.measure([Batch(programs, 0.01), Batch(programs[1:], 0.01)], records.extend)
    assert failures == {FEATURES[0].id: "the runner hung over it and was ended"}
    assert [record.key for record in records].count(FEATURES[1].id) == 2
    assert f"{Path(sys.executable).name} did not end within 6 s and was stopped" in caplog.text


def test_a_device_that_hangs_whatever_it_is_asked_is_given_up(
    hanging: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotailor.profiling.measuring.session.HUNG_RUNS", 2)
    session = hanging("sink")
    programs = tuple(session.runtime.replicas(feature) for feature in FEATURES)
    with pytest.raises(OverdueError, match=r"hung 2 times in a row .*restart the device.*hang_minutes"):
        session.measure([Batch(programs, 0.01)], lambda _: None)


def test_a_runner_that_hangs_while_it_weighs_is_ended(hanging: Callable[..., Session]) -> None:
    session = hanging("harness")
    with pytest.raises(OverdueError, match="did not end within"):
        session.weigh(session.runtime.harness())
