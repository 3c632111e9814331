"""The client: what it says of servers that are away, and of answers that are none."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from autotailor.serving import Client, Flag, PoolError
from autotailor.serving.wire.bodies import answers_of
from autotailor.serving.wire.frames import Frame, error_frame, receive
from pools import early_pool, tiny_pool
from served import Serving, serve_command
from wire_services import picture

NAMES = ("stage1", "stage2", "last")


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A server that gives every request the same bytes, and ends."""

    def run() -> None:
        connection, _ = listening.accept()
        with connection:
            receive(connection, 10_000, 5, 5)
            connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=run)
        thread.start()
        yield
        thread.join(5)


def test_a_server_that_is_away_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=r"no server answers .*autotailor runtime serve"):
        Client(str(tmp_path / "s"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "the server has ended the connection"),
        (Frame(130, 1).pack()[:-2], "before the end of a frame"),
        (Frame(131, 1).pack(), "was not asked for"),
        (Frame(130, 2).pack(), "was not asked for"),
        (error_frame(1, "no pool").pack(), "no pool"),
        (Frame(129, 1, b"abc").pack(), "answered 3 bytes"),
        (Frame(129, 1, bytes(12) + b"\5\0\0\0").pack(), "announced 5 outputs"),
    ],
)
def test_an_answer_that_is_none_is_an_error(tmp_path: Path, answer: bytes, message: str) -> None:
    ask = Client.infer if answer[6:7] == b"\x81" else Client.status
    arguments = (picture(1.0),) if ask is Client.infer else ()
    with (
        answering(tmp_path / "s", answer),
        Client(str(tmp_path / "s")) as client,
        pytest.raises(PoolError, match=message),
    ):
        ask(client, *arguments)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    pool = tiny_pool(tmp_path / "pool")
    server = Serving(serve_command("host"), pool.folder, "--deadline-ms", "1000")
    with server, Client(str(server.path)) as made:
        yield made


def test_a_picture_may_have_any_numbers_and_strides(client: Client) -> None:
    sent = np.arange(3 * 24 * 24, dtype=np.int64).reshape(3, 24, 24)[:, ::2, ::2]
    expected = client.infer(np.ascontiguousarray(sent, np.float32)).outputs
    np.testing.assert_array_equal(client.infer(sent).outputs, expected)


@pytest.mark.parametrize("shape", [(4, 4), (1, 0, 4), (1, 1, 4, 4)])
def test_a_picture_of_another_shape_is_refused_before_it_is_sent(client: Client, shape: tuple[int, ...]) -> None:
    with pytest.raises(PoolError, match="has the shape"):
        client.infer(np.zeros(shape))
    with pytest.raises(PoolError, match=r"the deadline is -1\.0 ms, expected a positive time"):
        client.infer(picture(1.0), -1.0)
    assert client.status()["counters"]["errors"] == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_a_setting_that_no_request_can_carry_is_refused_and_the_connection_stays(client: Client, value: object) -> None:
    with pytest.raises(PoolError, match=r"set: .* cannot be sent .* give finite numbers, names or None"):
        client.set(deadline_ms=value)  # type: ignore[arg-type]
    assert client.set(rate=2.0)["rate"] == 2.0


def test_the_exit_that_answered_is_told_where_it_is_asked_for(tmp_path: Path) -> None:
    pool = early_pool(tmp_path / "pool")
    server = Serving(serve_command("host"), pool.folder, "--deadline-ms", "1000")
    with server, Client(str(server.path)) as client:
        for name, number in (("guaranteed", 0), ("60 %", 1), (None, 2)):
            assert client.set(thresholds=name)["thresholds"] == (name and name.replace(" ", ""))
            reply, plain = client.infer_exits(pool.picture(0)), client.infer(pool.picture(0))
            assert (reply.exit, answers_of(client.status()["members"][0])[reply.exit]) == (number, NAMES[number])
            assert 0.25 < reply.confidence <= 1
            assert (plain.exit, np.isnan(plain.confidence)) == (0, True)
            np.testing.assert_array_equal(plain.outputs, reply.outputs)
            assert (Flag.EARLY in plain.flags, Flag.EARLY in reply.flags) == (number < 2, number < 2)


def test_a_pool_without_exits_answers_the_same_to_both_questions(client: Client) -> None:
    sent = np.ones((3, 12, 12), np.float32)
    reply = client.infer_exits(sent)
    assert (reply.exit, np.isnan(reply.confidence), Flag.EARLY in reply.flags) == (0, True, False)
    np.testing.assert_array_equal(reply.outputs, client.infer(sent).outputs)


def test_a_picture_that_is_too_large_is_refused_with_the_limit(client: Client) -> None:
    refused = r"at most \d+ are accepted: resize pictures to the largest member's input before"
    with pytest.raises(PoolError, match=refused):
        client.infer(picture(1.0, (3, 512, 512)))
