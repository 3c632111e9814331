"""A pool that runs within this process: what it answers, settings, and what is refused."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from autotailor.serving import Flag, PoolError, Request
from autotailor.serving.service import Service
from pools import SIDES, SPLITS, TinyPool, tiny_pool
from served import serve_binary

IMAGE = np.random.default_rng(1).normal(size=(3, SIDES[2], SIDES[2])).astype(np.float32)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> TinyPool:
    serve_binary()
    return tiny_pool(tmp_path_factory.mktemp("service") / "pool")


@pytest.fixture
def service(pool: TinyPool) -> Iterator[Service]:
    with Service.of(pool.folder, 1000.0) as made:
        yield made


def outputs_of(service: Service, image: np.ndarray = IMAGE) -> np.ndarray:
    return service.infer(Request(image)).outputs


def test_it_answers_what_the_most_accurate_member_computes(pool: TinyPool, service: Service) -> None:
    reply = service.infer(Request(IMAGE))
    assert (reply.member, reply.flags) == (2, Flag(0))
    assert reply.latency_ms > 0 < reply.cpu_ms
    np.testing.assert_allclose(reply.outputs, pool.logits("member_02", IMAGE), atol=1e-4)
    assert (service.names, service.largest_input) == (("member_00", "member_01", "member_02"), IMAGE.shape)
    assert service.accuracies == (90.0, 91.0, 92.0)


def test_the_deadline_is_that_of_the_largest_member_with_slack_where_none_is_given(pool: TinyPool) -> None:
    with Service.of(pool.folder) as service:
        assert service.status()["settings"]["deadline_ms"] == pytest.approx(1.25 * sum(SPLITS[2]))


@pytest.mark.parametrize("kind", ["double", "mirrored", "channels last"])
def test_a_picture_of_another_type_or_order_in_memory_has_the_same_answer(service: Service, kind: str) -> None:
    expected = outputs_of(service)
    given = {
        "double": IMAGE.astype(np.float64),
        "mirrored": np.ascontiguousarray(IMAGE[:, :, ::-1])[:, :, ::-1],
        "channels last": np.ascontiguousarray(IMAGE.transpose(1, 2, 0)).transpose(2, 0, 1),
    }[kind]
    assert not (given.dtype == np.float32 and given.flags.c_contiguous)
    np.testing.assert_array_equal(outputs_of(service, given), expected)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (IMAGE[0], r"shape \[12, 12\]"),
        (np.float32(1), r"shape \[\]"),
        (IMAGE[:1], "the size 1x12x12"),
        (IMAGE[:, :0], "the size 3x0x12"),
        (IMAGE + np.inf, "432 of the picture's 432 numbers are NaN or infinite"),
        (np.full(IMAGE.shape, 1e300), "432 of the picture's 432 numbers"),
    ],
    ids=["no channels", "a number", "other channels", "no rows", "infinite", "too large for float32"],
)
def test_what_is_no_picture_is_refused_and_changes_nothing(service: Service, image: np.ndarray, message: str) -> None:
    expected = outputs_of(service)
    with pytest.raises(PoolError, match=message):
        outputs_of(service, np.asarray(image))
    np.testing.assert_array_equal(outputs_of(service), expected)


def test_settings_change_together_or_not_at_all(service: Service) -> None:
    before = service.set({})
    for wrong, message in (
        ({"deadline_ms": 9.0, "quantile": 2.0}, "quantile is 2"),
        ({"pin": "member_77"}, "no member member_77"),
        ({"deadline_ms": np.nan}, "cannot be sent"),
        ({"colour": 1}, "colour is no setting"),
    ):
        with pytest.raises(PoolError, match=message):
            service.set(wrong)
        assert service.set({}) == before
    assert service.set({"pin": "member_01", "rate": 5.0}) == before | {"pin": "member_01", "rate": 5.0}


def test_a_closed_service_says_so(pool: TinyPool) -> None:
    service = Service.of(pool.folder)
    service.close()
    service.close()
    with pytest.raises(PoolError, match="the service is closed"):
        service.status()


def test_what_cannot_be_opened_is_named(tmp_path: Path, pool: TinyPool) -> None:
    with pytest.raises(PoolError, match="margin is -1"):
        Service.of(pool.folder, margin=-1.0)
    with pytest.raises(PoolError, match=r"pool\.txt: cannot be read"):
        Service.of(tmp_path)


def test_what_it_has_learnt_of_the_load_is_told(service: Service) -> None:
    assert service.load() == (1.0, 0.0)
    for _ in range(50):
        service.infer(Request(IMAGE))
    slowdown, waiting = service.load()
    assert slowdown != 1.0
    assert waiting >= 0.0
    assert service.status()["load"]["slowdown"] == pytest.approx(slowdown)
    assert "autotailor_inferences_total" in service.metrics()


def test_threads_get_what_the_named_member_answers_while_members_switch(pool: TinyPool, service: Service) -> None:
    expected = {2: pool.logits("member_02", IMAGE)}
    seen: set[int] = set()
    wrong: list[int] = []

    def ask() -> None:
        for _ in range(300):
            reply = service.infer(Request(IMAGE))
            seen.add(reply.member)
            if reply.member == 2 and np.abs(reply.outputs - expected[2]).max() > 1e-4:
                wrong.append(reply.member)

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    turn = 0
    while any(thread.is_alive() for thread in asking):
        service.set({"pin": f"member_{turn % 3:02}"})
        turn += 1
    for thread in asking:
        thread.join()
    assert wrong == []
    assert len(seen) > 1
    assert service.status()["counters"]["inferences"] == 900


def test_where_nothing_fits_for_long_a_search_is_wanted(pool: TinyPool) -> None:
    with Service.of(pool.folder, 1e-6, long_s=0.2) as service:
        assert Flag.NOTHING_FITS | Flag.LATE in service.infer(Request(IMAGE)).flags
        assert not service.status()["wants_search"]
        time.sleep(0.25)
        assert service.status()["wants_search"]
        service.set({"deadline_ms": 1000.0})
        assert not service.status()["wants_search"]
