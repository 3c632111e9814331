"""The service: engine and chooser joined, alone and behind a socket with several clients."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.runtime import Client, Policy, PoolError
from autotailor.runtime.files import open_pool
from autotailor.runtime.serving.engine import Ran
from autotailor.runtime.serving.resize import resized
from autotailor.runtime.serving.service import LONG_S, Service
from autotailor.runtime.serving.settings import Settings
from autotailor.runtime.wire import Address, Flag, Request, Server
from pools import SIDES, SPLITS, TinyPool, tiny_pool

IMAGES = np.random.default_rng(1).normal(size=(4, 3, 12, 12)).astype(np.float32)
LATENCIES = [sum(split) for split in SPLITS]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> TinyPool:
    return tiny_pool(tmp_path_factory.mktemp("service") / "pool")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Loaded:
    """A service under a load that the test decides, whose time passes as the test decides."""

    def __init__(self, pool: TinyPool, monkeypatch: pytest.MonkeyPatch, deadline_ms: float) -> None:
        self.clock, self.slowdown = Clock(), 1.0
        self.service = Service(open_pool(pool.folder), Settings(Policy(deadline_ms)), clock=self.clock)
        run = self.service.engine.run

        def slowed(picture: np.ndarray) -> Ran:
            member = self.service.engine.active
            took = LATENCIES[member] * self.slowdown
            return Ran(run(picture).outputs, took, took)

        monkeypatch.setattr(self.service.engine, "run", slowed)

    def infer(self, times: int = 1, deadline_ms: float = 0.0) -> list[tuple[int, Flag]]:
        found = []
        for _ in range(times):
            self.clock.now += 0.1
            self.service.engine.wait(10)
            reply = self.service.infer(Request(IMAGES[0], deadline_ms))
            found.append((reply.member, reply.flags))
        return found


@pytest.fixture
def loaded(pool: TinyPool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    made = Loaded(pool, monkeypatch, deadline_ms=0.08)
    with made.service:
        yield made


def test_a_restart_knows_how_many_threads_share_the_quota(pool: TinyPool) -> None:
    opened = open_pool(pool.folder)
    opened = replace(opened, index=replace(opened.index, threads=2))
    rate = 500.0 / LATENCIES[2]  # half a core for each of two threads
    for cores, member in ((0.99, 1), (1.2, 2)):
        policy = Policy(10 * LATENCIES[2], rate=rate, quota=cores)
        with Service(opened, Settings(policy)) as service:
            assert service.engine.active == member
            service.restart()
            assert service.engine.active == member


def test_load_sends_it_down_within_two_inferences_and_back_up(loaded: Loaded) -> None:
    assert {member for member, _ in loaded.infer(30)} == {2}
    loaded.slowdown = 2.0
    (first, late), (second, _), *rest = loaded.infer(10)
    assert (first, second) == (2, 2)
    assert late == Flag.LATE
    assert rest[0] == (1, Flag.SWITCHED)
    assert set(rest[1:]) == {(1, Flag(0))}
    loaded.slowdown = 1.0
    members = [member for member, _ in loaded.infer(30)]
    assert members[-1] == 2
    assert members == sorted(members)
    counters = loaded.service.status()["counters"]
    assert counters["switches"] == 2
    assert counters["missed"] == 2
    assert counters["inferences"] == 70
    assert [event["event"] for event in counters["events"]] == ["down", "up"]


def test_where_nothing_fits_the_smallest_runs_and_a_search_is_wanted_after_long(loaded: Loaded) -> None:
    loaded.infer(5)
    loaded.slowdown = 50.0
    assert loaded.infer(5)[-1] == (0, Flag.NOTHING_FITS | Flag.LATE)
    assert not loaded.service.status()["wants_search"]
    loaded.clock.now += LONG_S
    assert loaded.service.status()["wants_search"]
    loaded.slowdown = 1.0
    assert loaded.infer(30)[-1] == (2, Flag(0))
    assert not loaded.service.status()["wants_search"]


def test_a_pool_that_has_taken_the_folder_is_loaded_while_clients_ask(tmp_path: Path) -> None:
    old = tiny_pool(tmp_path / "pool")
    picture, wrong = IMAGES[0], []
    with Service.of(old.folder, 50.0) as service, Server(service, Address(tmp_path / "s")) as server:
        server.start()
        shutil.rmtree(old.folder)
        new = tiny_pool(old.folder, seed=1)
        right = [
            each.logits(f"member_{number:02}", np.asarray(resized(picture, side, side)))
            for each in (old, new)
            for number, side in enumerate(SIDES)
        ]
        is_over = threading.Event()

        def ask() -> None:
            with Client(server.address) as client:
                while not is_over.is_set():
                    outputs = client.infer(picture).outputs
                    if not any(np.allclose(outputs, expected, atol=1e-4) for expected in right):
                        wrong.append(outputs)

        asking = threading.Thread(target=ask)
        asking.start()
        with Client(server.address) as client:
            np.testing.assert_allclose(client.infer(picture).outputs, old.logits("member_02", picture), atol=1e-4)
            client.set(pin="member_00", quantile=0.9)  # a member of the pool whose files are gone is still prepared
            while (reply := client.infer(picture)).member != 0:
                pass
            np.testing.assert_allclose(reply.outputs, right[0], atol=1e-4)
            client.set(pin=None)
            while client.infer(picture).member != 2:
                pass
            before = client.status()
            after = client.reload()
            np.testing.assert_allclose(client.infer(picture).outputs, new.logits("member_02", picture), atol=1e-4)
        is_over.set()
        asking.join()
    assert wrong == []
    assert before["broken"] == after["broken"] == {}
    assert after["settings"] == before["settings"]


def test_what_was_learnt_of_the_load_is_taken_over(loaded: Loaded) -> None:
    loaded.slowdown = 1.6
    loaded.infer(10)
    take_over = loaded.service.successor()
    loaded.slowdown = 2.0
    loaded.infer(10)  # while the new pool is opened
    loaded.service.set({"quantile": 0.9})
    with take_over() as after:
        assert after.status()["settings"] == loaded.service.status()["settings"]
        assert after.status()["load"] == loaded.service.status()["load"]
        assert after.status()["target"] == loaded.service.status()["target"] != "member_02"


def test_a_pool_of_another_model_does_not_take_the_place(tmp_path: Path) -> None:
    pool = tiny_pool(tmp_path / "pool")
    with Service.of(pool.folder, 50.0) as service, Server(service, Address(tmp_path / "s")) as server:
        server.start()
        index = open_pool(pool.folder).index
        with Client(server.address) as client:
            for changed, message in (
                (replace(index, model="other"), "the new pool's model is other, and clients expect tiny"),
                (replace(index, members=index.members[:2]), "no member of the new pool takes pictures of 3x12x12"),
            ):
                (pool.folder / "pool.txt").write_text(changed.text(), encoding="utf-8")
                with pytest.raises(PoolError, match=message):
                    client.reload()
            assert client.infer(IMAGES[0]).member == 2
            (pool.folder / "pool.txt").unlink()
            with pytest.raises(PoolError, match=r"pool\.txt: cannot be read"):
                client.reload()
            assert client.infer(IMAGES[0]).member == 2


def test_a_request_with_a_deadline_of_its_own_is_decided_upon_before_it_runs(loaded: Loaded) -> None:
    assert loaded.infer(3)[-1][0] == 2
    assert loaded.infer(1, deadline_ms=0.03)[0][0] == 0
    assert loaded.infer(3)[-1][0] in (0, 2)
    loaded.clock.now += 1
    assert loaded.infer(40)[-1][0] == 2


def test_a_pinned_member_runs_whatever_the_load_is(loaded: Loaded) -> None:
    assert loaded.service.set({"pin": "member_01"})["pin"] == "member_01"
    loaded.slowdown = 50.0
    assert {member for member, _ in loaded.infer(10)} == {1}
    loaded.service.set({"pin": None})
    assert loaded.infer(3)[-1][0] == 0


def test_a_member_that_is_damaged_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tiny_pool(tmp_path / "pool")
    (broken.folder / "members" / "member_01.param").write_text("", encoding="utf-8")
    made = Loaded(broken, monkeypatch, deadline_ms=0.08)
    with made.service as service:
        made.infer(30)
        made.slowdown = 2.0
        assert made.infer(10)[-1][0] == 0
        assert "SHA-256" in service.status()["broken"]["member_01"]
        assert "broken" in [event["event"] for event in service.counters.events]
        with pytest.raises(PoolError, match="member_01' is no member"):
            service.set({"pin": "member_01"})


def test_a_request_that_fails_is_counted_and_changes_nothing(loaded: Loaded) -> None:
    with pytest.raises(PoolError, match="channels"):
        loaded.service.infer(Request(IMAGES[0][:1]))
    assert loaded.service.counters.errors == 1
    assert loaded.infer(1) == [(2, Flag(0))]


def test_settings_that_are_invalid_change_nothing(loaded: Loaded) -> None:
    before = loaded.service.chooser.settings
    with pytest.raises(PoolError, match="quantile"):
        loaded.service.set({"deadline_ms": 9.0, "quantile": 2.0})
    assert loaded.service.chooser.settings is before


def test_a_battery_is_weighed_where_every_energy_is_known(loaded: Loaded) -> None:
    loaded.infer(3)
    loaded.service.set({"battery": 0.0})
    loaded.infer(10)
    assert loaded.infer(1)[0][0] == 0
    loaded.service.set({"battery": 1.0})
    assert loaded.infer(20)[-1][0] == 2


def test_the_deadline_is_that_of_the_largest_member_with_slack_where_none_is_given(pool: TinyPool) -> None:
    with Service.of(pool.folder) as service:
        assert service.chooser.settings.policy.deadline_ms == pytest.approx(1.25 * LATENCIES[2])
        assert service.status()["active"] == "member_02"


def test_clients_at_once_get_what_the_named_member_answers_while_members_switch(pool: TinyPool, tmp_path: Path) -> None:
    wrong: list[str] = []
    seen: set[int] = set()

    def ask(address: Address, image: np.ndarray) -> None:
        with Client(address) as client:
            for _ in range(150):
                reply = client.infer(image)
                side = SIDES[reply.member]
                expected = pool.logits(f"member_{reply.member:02}", resized(image, side, side))
                seen.add(reply.member)
                if np.abs(reply.outputs - expected).max() >= 1e-4:
                    wrong.append(f"member {reply.member}")

    with Service.of(pool.folder, 50.0) as service, Server(service, Address(tmp_path / "s")) as server:
        server.start()
        asking = [threading.Thread(target=ask, args=(server.address, image)) for image in IMAGES]
        for thread in asking:
            thread.start()
        with Client(server.address) as client:
            turn = 0
            while any(thread.is_alive() for thread in asking):
                client.set(pin=f"member_{turn % 3:02}")
                turn += 1
            status = client.status()
        for thread in asking:
            thread.join(30)
    assert wrong == []
    assert seen == {0, 1, 2}
    assert status["counters"]["inferences"] == 600
    assert status["counters"]["errors"] == 0
