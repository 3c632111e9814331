"""Members with exits: what each answers, in time at deadlines, over the socket; pools whose exits make no sense."""

import hashlib
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from autotailor.serving.files import Index
from pools import EXITS, EarlyPool, early_pool
from served import INFER_EXITS, LATE, METRICS, RELOAD, Client, Refused, Serving, infer_body, refusal

EARLY = 8
RELAXED = ("--deadline-ms", "1000")


@pytest.fixture
def pool(tmp_path: Path) -> EarlyPool:
    return early_pool(tmp_path / "pool")


def ask(
    client: Client, picture: npt.NDArray[np.float32], deadline_ms: float = 0.0
) -> tuple[int, int, int, float, float, npt.NDArray[np.float32]]:
    """Flags, exit, count of exits, confidence, latency and outputs."""
    body = client.ask(INFER_EXITS, infer_body(picture, deadline_ms))
    _, flags, latency, _, exit_, count, confidence, length = struct.unpack_from("<HHffHHfI", body)
    outputs = np.frombuffer(body, "<f4", offset=24)
    assert len(outputs) == length
    return flags, exit_, count, confidence, latency, outputs


def confidence_of(outputs: npt.NDArray[np.float32], kind: str) -> float:
    shares = np.sort(np.exp(outputs - outputs.max()))
    shares /= shares.sum()
    return float(shares[-1] if kind == "probability" else shares[-1] - shares[-2])


@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_a_picture_leaves_at_the_first_exit_that_is_as_sure_as_its_threshold(
    command: tuple[str, ...], tmp_path: Path, kind: str
) -> None:
    pool = early_pool(tmp_path / "pool", kind=kind)
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        assert client.status()["settings"]["thresholds"] == "guaranteed"
        for name, number in (("guaranteed", 0), ("60 %", 1), ("late", 2), (None, 2)):
            client.set(thresholds=name)
            for row in range(4):
                picture = pool.picture(row)
                flags, exit_, count, confidence, _, outputs = ask(client, picture)
                assert (exit_, count, flags & EARLY) == (number, len(EXITS), EARLY if number < 2 else 0)
                np.testing.assert_allclose(outputs, pool.logits(number, picture), atol=1e-4)
                assert confidence == pytest.approx(confidence_of(outputs, kind), abs=1e-6)
                np.testing.assert_array_equal(client.infer(picture).outputs, outputs)  # kind 1: as before
        status, text = client.status(), client.ask(METRICS).decode()
        assert status["counters"]["by_exit"] == {"early": {"stage1": 8, "stage2": 8, "last": 16}}
        assert [each["name"] for each in status["members"][0]["exits"]] == list(EXITS)
        assert 'autotailor_exits_total{member="early",exit="stage2"} 8' in text
        with pytest.raises(Refused, match="no member has any called 70%: there are 60%, guaranteed, late"):
            client.set(thresholds="70 %")


def test_where_pictures_always_leave_early_no_second_thread_is_woken_for_them(
    command: tuple[str, ...], pool: EarlyPool
) -> None:
    """The run that made the buffers says how long a whole one takes, although none has answered."""
    with Serving(command, pool.folder, "--deadline-ms", "600000") as server, server.client() as client:
        threads = Path(f"/proc/{server.process.pid}/task")
        before = len(list(threads.iterdir()))
        client.set(thresholds="60 %")
        assert {ask(client, pool.picture(row))[1] for row in range(4)} == {1}
        assert len(list(threads.iterdir())) == before
        client.set(thresholds=None)
        for deadline in np.geomspace(0.5, 50, 20):
            ask(client, pool.picture(0), deadline)
        assert len(list(threads.iterdir())) == before + 1, "at a near deadline a second thread goes on"


def test_where_a_layer_takes_longer_than_forecast_the_exit_before_answers_in_time(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """The last convolution takes a hundred times what pool.txt tells, so that it begins, and is overtaken."""
    pool = early_pool(tmp_path / "pool", side=64, width=32, kernel=31)
    picture = pool.picture(0)
    with Serving(command, pool.folder, "--deadline-ms", "600000") as server, server.client() as client:
        client.set(thresholds=None)
        flags, exit_, *_, whole, _ = ask(client, picture)
        assert (exit_, flags & EARLY) == (2, 0)
        for _ in range(3):
            flags, exit_, *_, latency, outputs = ask(client, picture, 0.4 * whole)
            assert (exit_, flags & EARLY) == (1, EARLY)
            assert latency < 0.7 * whole
            np.testing.assert_allclose(outputs, pool.logits(1, picture), atol=1e-3)
            assert ask(client, picture)[1] == 2  # the engine waits for the layer that was under way, and goes on
        assert client.status()["counters"]["errors"] == 0


@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.sweep)])
def test_answers_at_deadlines_under_load_are_those_of_the_exit_that_is_named(
    command: tuple[str, ...], tmp_path: Path, count: int
) -> None:
    """How many are in time depends on who else uses the machine: ``benchmarks/exits.py --deadlines`` counts them."""
    pool = early_pool(tmp_path / "pool", side=64, width=32)
    pictures = [pool.picture(seed) for seed in range(3)]
    expected = [[pool.logits(number, picture) for number in range(3)] for picture in pictures]
    with Serving(command, pool.folder, "--deadline-ms", "60000") as server, server.client() as client, burning():
        client.set(thresholds=None)
        whole = float(np.median([ask(client, pictures[0])[4] for _ in range(9)]))
        exits: dict[float, set[int]] = {0.3: set(), 0.6: set(), 0.9: set(), 20.0: set()}
        for turn in range(count):
            share = list(exits)[turn // 3 % 4]
            _, exit_, *_, outputs = ask(client, pictures[turn % 3], share * whole)
            np.testing.assert_allclose(outputs, expected[turn % 3][exit_], atol=1e-3)
            exits[share].add(exit_)
        counters = client.status()["counters"]
    assert (counters["inferences"], counters["errors"]) == (count + 9, 0)
    assert exits[20.0] == {2}
    assert min(exits[0.3]) < 2


@contextmanager
def burning() -> Iterator[None]:
    """A process that computes meanwhile."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as load:
        try:
            yield
        finally:
            load.kill()


def test_at_a_deadline_that_nothing_meets_the_first_exit_answers(command: tuple[str, ...], pool: EarlyPool) -> None:
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        flags, exit_, *_, outputs = ask(client, pool.picture(0), 1e-4)
        assert (exit_, flags & (LATE | EARLY)) == (0, LATE | EARLY)
        np.testing.assert_allclose(outputs, pool.logits(0, pool.picture(0)), atol=1e-4)
        client.set(thresholds=None)
        assert ask(client, pool.picture(1))[1] == 2  # and the next inference has all of its time


@pytest.mark.parametrize(("deadline_s", "active"), [(0.7, "early"), (0.5, "early"), (0.3, "small"), (0.05, "small")])
def test_members_compete_by_the_last_answer_that_meets_the_deadline(
    command: tuple[str, ...], pool: EarlyPool, deadline_s: float, active: str
) -> None:
    """``small`` is better than the first exit of ``early``, and worse than the second; times are told in seconds."""
    path = pool.folder / "pool.txt"
    index = Index.parse(path.read_bytes())
    (early,) = index.members
    for ending in ("param", "slices"):
        shutil.copy(pool.folder / "members" / f"early.{ending}", pool.folder / "members" / f"small.{ending}")
    exits = tuple(replace(each, latency_ms=1e3 * each.latency_ms) for each in early.exits)
    slow = replace(early, split_ms=(300.0, 200.0, 100.0), exits=exits)
    small = replace(early, name="small", accuracy=80.5, split_ms=(50.0, 30.0, 20.0), exits=(), thresholds=())
    path.write_text(replace(index, members=(small, slow)).text())
    with Serving(command, pool.folder, "--deadline-ms", str(1e3 * deadline_s)) as server, server.client() as client:
        assert client.status()["active"] == active
        picture = pool.picture(0)
        _, exit_, count, confidence, _, outputs = ask(client, picture)
        assert count == (2 if active == "early" else 0)
        np.testing.assert_allclose(outputs, pool.logits(2 if active == "small" else exit_, picture), atol=1e-4)
        assert confidence == pytest.approx(confidence_of(outputs, "probability"), abs=1e-6)


def test_a_pool_with_exits_takes_the_place_of_one_without(command: tuple[str, ...], pool: EarlyPool) -> None:
    path = pool.folder / "pool.txt"
    whole = path.read_text()
    index = Index.parse(whole.encode())
    plain = tuple(replace(each, exits=(), thresholds=()) for each in index.members)
    path.write_text(replace(index, members=plain, confidence=None).text())
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        picture = pool.picture(0)
        assert "thresholds" not in client.status()["settings"]
        assert np.isnan(ask(client, picture)[3])
        path.write_text(whole)
        client.ask(RELOAD)
        assert client.status()["settings"]["thresholds"] == "guaranteed"
        assert ask(client, picture)[1:3] == (0, 2)
        path.write_text(replace(index, members=plain, confidence=None).text())
        client.ask(RELOAD)
        assert ask(client, picture)[1:3] == (0, 0)


def changed(pool: EarlyPool, before: str, after: str, param: bool = False) -> Path:
    """The pool with another text in ``pool.txt`` or in the member's network, and hashes that fit."""
    index, network = pool.folder / "pool.txt", pool.folder / "members" / "early.param"
    text = "".join(index.read_text().splitlines(keepends=True)[:-1])
    if param:
        old = hashlib.sha256(network.read_bytes()).hexdigest()
        assert before in network.read_text()
        network.write_text(network.read_text().replace(before, after))
        text = text.replace(old, hashlib.sha256(network.read_bytes()).hexdigest())
    else:
        assert before in text
        text = text.replace(before, after, 1)
    index.write_text(f"{text}end {hashlib.sha256(text.encode()).hexdigest()}\n")
    return pool.folder


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("thresholds guaranteed 0.0 -", "thresholds guaranteed 0.0", "1 thresholds for 2 exits"),
        ("thresholds guaranteed 0.0 -", "thresholds guaranteed 0.0 - -", "3 thresholds for 2 exits"),
        ("thresholds guaranteed 0.0 -", "thresholds guaranteed nan -", "a threshold is nan"),
        ("thresholds guaranteed 0.0 -", "thresholds guaranteed sure -", "a threshold is sure"),
        ("thresholds guaranteed 0.0 -", "thresholds guaranteed -1 -", "a threshold is -1"),
        ("thresholds 60%", "thresholds guaranteed", "two lines of thresholds"),
        ("exit stage2", "exit stage1", "two exits of a member have the name stage1"),
        ("exit stage2", "exit last", "called last"),
        ("exit stage2", "exit ../x", "no letter, digit"),
        ("exit stage2", "leave stage2", "expected member, not leave"),
        ("output out1\nthr", "output out0\nthr", "or the blob out0"),
        ("output out1\nthr", "output out2\nthr", "the blob of the member's own answer"),
        ("output out1\nthr", "output nothing\nthr", "has no blob nothing"),
        ("output out1\nthr", "output in0\nthr", "not stand in the order|several layers read in0"),
        ("latency_ms 0.4 output out1", "latency_ms 0.1 output out1", "not between"),
        ("latency_ms 0.4 output out1", "latency_ms 9 output out1", "not between"),
        ("latency_ms 0.2 output out0", "latency_ms 0 output out0", "not positive"),
        ("confidence probability", "confidence entropy", "a probability or a margin"),
        ("logits\n", "maps\n", "logits or probabilities"),
        ("confidence probability logits\n", "", "expected member, not exit"),
    ],
)
def test_exits_that_make_no_sense_are_refused(
    command: tuple[str, ...], pool: EarlyPool, before: str, after: str, message: str
) -> None:
    said = refusal(command, str(changed(pool, before, after)))
    assert re.search(message, said), said


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "Split split1 1 2 a a0 a1",
            "Split split1 1 2 a a0 a9",
            "no layer computes a1|cannot load",
        ),
        (
            "fc1 1 1 p1 out0 0=4",
            "fc1 1 1 p1 out0 0=3",
            "outputs, and pool.txt says 4|cannot load",
        ),
        ("Pooling mean1 1 1 a0 p1", "Pooling mean1 1 1 a1 p1", "several layers read a1 without a Split"),
    ],
    ids=["a blob that nobody computes", "other outputs", "no Split"],
)
def test_networks_that_do_not_have_the_exits_are_refused(
    command: tuple[str, ...], pool: EarlyPool, before: str, after: str, message: str
) -> None:
    said = refusal(command, str(changed(pool, before, after, param=True)))
    assert re.search(message, said), said
