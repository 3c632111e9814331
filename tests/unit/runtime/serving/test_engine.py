"""The engine: what each member answers, what is materialised, and switches between inferences."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotailor.runtime import PoolError
from autotailor.runtime.files import Member, OpenPool, load_member, open_pool
from autotailor.runtime.serving import engine
from autotailor.runtime.serving.engine import Engine
from autotailor.runtime.serving.resize import resized
from pools import SIDES, TinyPool, tiny_pool

IMAGE = np.random.default_rng(1).normal(size=(3, 12, 12)).astype(np.float32)


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


class Gate:
    """Loads a member when it may, and holds who is loaded."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.asked: list[str] = []
        self.fails: set[str] = set()

    def __call__(self, pool: OpenPool, member: Member) -> Any:
        self.asked.append(member.name)
        assert self.open.wait(10)
        if member.name in self.fails:
            raise PoolError(f"{member.name} is damaged")
        return load_member(pool, member)


def smallest(numbers: Iterable[int]) -> int:
    return min(numbers)


def is_answer_of(pool: TinyPool, number: int, outputs: np.ndarray, image: np.ndarray = IMAGE) -> bool:
    expected = pool.logits(f"member_{number:02}", resized(image, SIDES[number], SIDES[number]))
    return bool(np.abs(outputs - expected).max() < 1e-4)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_member_answers_what_its_slices_say(pool: TinyPool, number: int) -> None:
    with Engine(open_pool(pool.folder), number) as engine:
        ran = engine.run(IMAGE)
        assert is_answer_of(pool, number, ran.outputs)
        assert not any(is_answer_of(pool, other, ran.outputs) for other in {0, 1, 2} - {number})
        assert ran.wall_ms > 0 < ran.cpu_ms


def test_a_member_that_is_not_there_is_prepared_while_another_one_runs(pool: TinyPool) -> None:
    gate = Gate()
    with Engine(open_pool(pool.folder), 2, gate) as engine:
        gate.open.clear()
        engine.aim(1, smallest)
        assert (engine.active, engine.target, engine.take()) == (0, 1, False)
        assert is_answer_of(pool, 0, engine.run(IMAGE).outputs)
        gate.open.set()
        assert engine.wait(10)
        assert is_answer_of(pool, 0, engine.run(IMAGE).outputs)  # nothing switches by itself
        assert engine.take()
        assert is_answer_of(pool, 1, engine.run(IMAGE).outputs)
        assert not engine.take()
        assert [each.member for each in engine.preparations] == [1]


def test_the_smallest_is_there_at_once_and_so_is_the_member_before(pool: TinyPool) -> None:
    gate = Gate()
    with Engine(open_pool(pool.folder), 2, gate) as engine:
        assert engine.loaded == (0, 2)
        engine.aim(0, smallest)
        assert (engine.active, engine.loaded) == (0, (0, 2))
        engine.aim(2, smallest)
        assert engine.active == 2
        assert gate.asked.count("member_02") == 1


def test_no_more_than_three_members_are_materialised(pool: TinyPool) -> None:
    with Engine(open_pool(pool.folder), 2) as engine:
        for number in (1, 2, 1, 0, 2):
            engine.aim(number, smallest)
            assert engine.wait(10)
            engine.take()
            assert {0, number} <= set(engine.loaded)
            assert len(engine.loaded) <= 3
        assert [each.member for each in engine.preparations] == [1]


def test_a_wish_that_is_overtaken_does_not_become_active(pool: TinyPool) -> None:
    gate = Gate()
    with Engine(open_pool(pool.folder), 0, gate) as engine:
        gate.open.clear()
        engine.aim(1, smallest)
        engine.aim(2, smallest)
        gate.open.set()
        assert engine.wait(10)
        engine.take()
        assert engine.active == 2
        assert is_answer_of(pool, 2, engine.run(IMAGE).outputs)


def test_a_member_that_cannot_be_loaded_is_named_and_the_engine_runs_on(pool: TinyPool) -> None:
    gate = Gate()
    gate.fails.add("member_01")
    with Engine(open_pool(pool.folder), 2, gate) as engine:
        engine.aim(1, max)
        assert not engine.wait(10)
        assert engine.broken == {1: "member_01 is damaged"}
        assert is_answer_of(pool, 2, engine.run(IMAGE).outputs)
        engine.aim(0, smallest)
        assert engine.active == 0
        assert gate.asked.count("member_01") == 1


def test_files_that_were_changed_before_they_were_read_are_noticed(pool: TinyPool) -> None:
    opened = open_pool(pool.folder)
    (pool.folder / "members" / "member_01.slices").write_text("tag 0\n", encoding="utf-8")
    with Engine(opened, 2) as engine:
        engine.aim(1, max)
        assert not engine.wait(10)
        assert "SHA-256" in engine.broken[1]


def test_a_large_picture_that_is_resized_gives_the_same_answer_each_time(pool: TinyPool) -> None:
    large = np.random.default_rng(2).normal(size=(3, 224, 224)).astype(np.float32)
    with Engine(open_pool(pool.folder), 2) as engine:
        for _ in range(30):
            outputs = engine.run(large).outputs
            np.full((3, 12, 12), 1e9, dtype=np.float32)  # what a freed array leaves behind is overwritten
            assert is_answer_of(pool, 2, outputs, large)


@pytest.mark.parametrize("kind", ["double", "mirrored", "channels last"])
def test_a_picture_of_another_type_or_order_in_memory_has_the_same_answer(pool: TinyPool, kind: str) -> None:
    made = {
        "double": IMAGE.astype(np.float64),
        "mirrored": np.ascontiguousarray(IMAGE[:, :, ::-1])[:, :, ::-1],
        "channels last": np.ascontiguousarray(IMAGE.transpose(1, 2, 0)).transpose(2, 0, 1),
    }
    number = SIDES.index(IMAGE.shape[1])  # of a member that takes the picture as it is
    with Engine(open_pool(pool.folder), number) as engine:
        assert is_answer_of(pool, number, engine.run(made[kind]).outputs)


def test_a_picture_without_rows_is_refused(pool: TinyPool) -> None:
    with (
        Engine(open_pool(pool.folder)) as engine,
        pytest.raises(PoolError, match=r"the shape \[3, 4\], expected \[3, h"),
    ):
        engine.run(np.zeros((3, 4), np.float32))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300])
def test_a_picture_with_a_number_that_is_none_in_float32_is_refused(pool: TinyPool, wrong: float) -> None:
    """An answer to it would look like any other."""
    image = IMAGE.astype(np.float64)
    image[1, 2, :2] = wrong
    with (
        Engine(open_pool(pool.folder)) as engine,
        pytest.raises(PoolError, match=rf"infer: 2 of the picture's {image.size} numbers are NaN or infinite"),
    ):
        engine.run(image)


def test_a_number_is_no_picture(pool: TinyPool) -> None:
    with Engine(open_pool(pool.folder)) as engine, pytest.raises(PoolError, match=r"the shape \[\], expected \[3, h"):
        engine.run(np.zeros((), np.float32))


def test_a_picture_with_other_channels_is_refused(pool: TinyPool) -> None:
    with Engine(open_pool(pool.folder)) as engine, pytest.raises(PoolError, match="has 1 channels, expected 3"):
        engine.run(IMAGE[:1])


def test_no_inference_mixes_members_while_switches_are_prepared(pool: TinyPool) -> None:
    with Engine(open_pool(pool.folder), 2) as engine:
        seen = set()
        for turn in range(300):
            engine.aim((2, 1, 0, 1)[turn % 4], smallest)
            for _ in range(3):
                engine.take()
                active = engine.active
                assert is_answer_of(pool, active, engine.run(IMAGE).outputs)
                seen.add(active)
        assert seen == {0, 1, 2}


def test_no_weights_are_read_while_an_inference_runs(pool: TinyPool, monkeypatch: pytest.MonkeyPatch) -> None:
    running, seen = [False], []
    run_member, read = engine.run_member, OpenPool.read

    def running_member(net: Any, member: Member, picture: Any, watch: Any, turns: Any) -> engine.Ran:
        with turns:
            running[0] = True
            time.sleep(0.002)  # lets the preparing thread run, if nothing else holds it back
            ran = run_member(net, member, picture, watch)
            running[0] = False
        return ran

    def seeing(self: OpenPool, piece: Any) -> Any:
        seen.append(running[0])
        time.sleep(0.001)
        return read(self, piece)

    monkeypatch.setattr(engine, "run_member", running_member)
    with Engine(open_pool(pool.folder), 2) as made:
        monkeypatch.setattr(OpenPool, "read", seeing)
        made.aim(1, lambda loaded: 2)
        while not made.take():
            made.run(IMAGE)
    assert len(seen) > 3
    assert not any(seen)


def test_weights_are_handed_over_in_small_parts_and_whole(pool: TinyPool, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_pool(pool.folder)
    gentle = engine._Gentle.of(opened, engine.Shift(engine.Turns()))
    monkeypatch.setattr(engine, "PART_BYTES", 64)
    for member in opened.index.members:
        for piece in opened.pieces(member):
            parts = list(gentle.parts(piece))
            assert max(part.nbytes for part in parts) <= 64
            np.testing.assert_array_equal(np.concatenate(parts), opened.read(piece))
    gentle.shift.end()
