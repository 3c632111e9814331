"""The server: what it answers, two clients, what is malformed, and clients that stop in the middle."""

from __future__ import annotations

import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotailor.runtime import PoolError
from autotailor.runtime.wire import Address, Client, Flag, Server, server
from autotailor.runtime.wire.bodies import Reply, Request
from autotailor.runtime.wire.frames import HEADER, MAGIC, VERSION, Frame, Kind, receive
from wire_services import Recorder, picture, served

Served = tuple[Server, Recorder]


@pytest.fixture(params=["unix", "tcp"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with served(Address(tmp_path / "s") if request.param == "unix" else Address()) as found:
        yield found


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "s") as found:
        yield found


def answers(address: Address) -> None:
    """The server still answers a new client."""
    with Client(address) as client:
        assert client.infer(picture(2.0)).outputs.tolist() == [4.0] * 4


def test_a_client_gets_what_it_asks_for(running: Served) -> None:
    server, recorder = running
    with Client(server.address) as client:
        answer = client.infer(picture(7.0), deadline_ms=3.0)
        assert (answer.member, answer.flags, answer.latency_ms, answer.cpu_ms) == (3, Flag.LATE, 1.5, 1.25)
        assert answer.outputs.tolist() == [14.0] * 4
        assert client.status() == {"pictures": [7.0]}
        assert client.metrics() == "pictures 1\n"
        assert client.set(rate=2.0, pin=None) == {"deadline_ms": 5.0, "rate": 2.0, "pin": None}
    assert recorder.settings["rate"] == 2.0


def test_a_process_without_descriptors_to_spare_accepts_its_client_later(local: Served) -> None:
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    with socket.socket(socket.AF_UNIX) as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before, 256), most))
        try:
            with suppress(OSError):  # too many open files
                while True:
                    taken.append(os.dup(client.fileno()))
            client.connect(str(local[0].address.path))
            time.sleep(2 * server.WAKE_S)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
            for number in taken:
                os.close(number)
        client.sendall(Frame(Kind.METRICS, 5).pack())
        answer = receive(client, 1000, 10.0, 10.0)
    assert answer is not None
    assert answer.body == b"pictures 0\n"
    answers(local[0].address)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_a_setting_that_no_request_can_carry_is_refused_and_the_connection_stays(local: Served, value: object) -> None:
    with Client(local[0].address) as client:
        with pytest.raises(PoolError, match=r"set: .* cannot be sent .* give finite numbers, names or None"):
            client.set(deadline_ms=value)  # type: ignore[arg-type]
        assert client.set(rate=2.0)["rate"] == 2.0


def test_a_successor_takes_over_between_two_requests(local: Served) -> None:
    server, first = local
    first.may_go.clear()
    replies: list[Reply] = []

    def ask() -> None:
        with Client(server.address) as client:
            replies.append(client.infer(picture(1.0)))

    asking = threading.Thread(target=ask)
    asking.start()
    while not first.running:
        time.sleep(0.01)
    threading.Timer(0.2, first.may_go.set).start()
    with Client(server.address) as client:
        assert client.reload() == {"pictures": []}
        client.infer(picture(2.0))
        second = first.next
        asking.join()
        assert (len(replies), first.pictures, second.pictures) == (1, [1.0], [2.0])
        client.reload()
        assert second.is_closed
    assert not first.is_closed  # it belongs to who made the server
    server.close()
    assert second.next.is_closed


def test_where_there_is_no_successor_the_service_goes_on(local: Served) -> None:
    server, recorder = local
    recorder.has_successor = False
    with Client(server.address) as client:
        for _ in range(2):  # the refusal of the first does not leave the second waiting
            with pytest.raises(PoolError, match="the folder holds no whole pool"):
                client.reload()
        assert client.infer(picture(1.0)).member == 3


@pytest.mark.parametrize(("value", "message"), [(-1.0, "a negative picture"), (1e7, "its log says where")])
def test_a_request_that_fails_leaves_the_connection_open(local: Served, value: float, message: str) -> None:
    with Client(local[0].address) as client:
        with pytest.raises(PoolError, match=message):
            client.infer(picture(value))
        assert client.infer(picture(1.0)).outputs.tolist() == [2.0] * 4


def test_a_client_of_a_unix_socket_can_stop_the_server_and_one_of_tcp_cannot(running: Served) -> None:
    server, _ = running
    with Client(server.address) as client:
        if server.address.is_unix:
            client.stop()
            assert server.stopped.wait(5)
        else:
            with pytest.raises(PoolError, match="only a client of a Unix socket"):
                client.stop()
            assert not server.stopped.is_set()


def test_requests_of_two_clients_take_turns_in_the_order_of_their_coming(local: Served) -> None:
    server, recorder = local
    recorder.may_go.clear()

    def ask(value: float) -> None:
        with Client(server.address) as client:
            client.infer(picture(value))

    asking = []
    for value in range(6):
        asking.append(threading.Thread(target=ask, args=(float(value),)))
        asking[-1].start()
        waiting = server._turns._waiting
        end = time.monotonic() + 60
        while (recorder.running, len(waiting)) != (1, value) and time.monotonic() < end:
            time.sleep(0.001)
    recorder.may_go.set()
    for thread in asking:
        thread.join(60)
    assert recorder.pictures == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_ninth_client_is_refused_and_a_place_that_is_left_can_be_taken(local: Served) -> None:
    address = local[0].address
    clients = [Client(address) for _ in range(server.MOST_CLIENTS)]
    for client in clients:
        client.status()
    with Client(address) as ninth, pytest.raises(PoolError, match="takes no more"):
        ninth.status()
    clients[0].close()
    end = time.monotonic() + 60
    while len(local[0]._clients) == server.MOST_CLIENTS and time.monotonic() < end:
        time.sleep(0.001)
    answers(address)
    for client in clients:
        client.close()


def header(magic: int = MAGIC, version: int = VERSION, kind: int = 1, length: int = 0) -> bytes:
    return HEADER.pack(magic, version, kind, 9, length)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (header(magic=0x47455420) + b"/ HTTP/1.1", "another protocol"),
        (header(version=2), "has version 2"),
        (header(length=4097), "at most 4096"),
        (header(length=0xFFFFFFFF) + bytes(100_000), "at most 4096"),
    ],
)
def test_a_broken_frame_ends_the_connection_with_an_error(running: Served, sent: bytes, message: str) -> None:
    address = running[0].address
    with address.connect(5) as raw:
        raw.sendall(sent)
        answer = receive(raw, 5000, 5, 5)
        assert answer is not None
        assert answer.kind == Kind.ERROR
        assert message in answer.body.decode()
        assert raw.recv(1) == b""
    answers(address)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (1, b"", "has 0 bytes"),
        (1, struct.pack("<fHHHH", 0, 1, 2, 2, 0) + bytes(15), "takes 16 bytes"),
        (1, struct.pack("<fHHHH", 0, 0, 2, 2, 0), "0x2x2"),
        (1, struct.pack("<fHHHH", 0, 65535, 65535, 65535, 0), "65535x65535x65535"),
        (1, struct.pack("<fHHHH", float("nan"), 1, 1, 1, 0) + bytes(4), "deadline is nan"),
        (1, struct.pack("<fHHHH", -1, 1, 1, 1, 0) + bytes(4), "deadline is -1.0"),
        (2, b"x", "has no body"),
        (4, b"\xff", "JSON object"),
        (4, b"[1]", "not list"),
        (4, b'{"rate": NaN}', "NaN is no JSON number"),
        (4, b"[" * 4000, "JSON object"),
        (0, b"", "kind 0 is unknown"),
        (255, b"", "kind 255 is unknown"),
        (60000, b"", "kind 60000 is unknown"),
    ],
)
def test_a_malformed_request_is_refused_and_the_connection_stays(
    local: Served, kind: int, body: bytes, message: str
) -> None:
    with local[0].address.connect(5) as raw:
        raw.sendall(Frame(kind, 77, body).pack())
        refused = receive(raw, 5000, 5, 5)
        assert refused is not None
        assert (refused.kind, refused.id) == (Kind.ERROR, 77)
        assert message in refused.body.decode()
        raw.sendall(Frame(Kind.METRICS, 78).pack())
        assert receive(raw, 5000, 5, 5) == Frame(Kind.METRICS + 128, 78, b"pictures 0\n")


def test_a_client_that_stops_within_a_frame_loses_its_connection(
    local: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.05)
    with local[0].address.connect(5) as raw:
        raw.sendall(header(length=100) + b"half")
        assert raw.recv(1) == b""
    answers(local[0].address)


def test_a_client_that_has_gone_before_its_answer_keeps_nobody_waiting(local: Served) -> None:
    running, recorder = local
    recorder.may_go.clear()
    raw = running.address.connect(5)
    raw.sendall(Frame(Kind.INFER, 1, Request(picture(1.0)).pack()).pack())
    raw.close()
    recorder.may_go.set()
    answers(running.address)


FRAMES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda kind, number, body: Frame(kind, number, body).pack(),
        st.integers(0, 65535).filter(lambda kind: kind != Kind.STOP) | st.integers(0, 4),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=200),
    ),
    st.builds(
        lambda shape, deadline, data: Frame(1, 5, struct.pack("<f4H", deadline, *shape, 0) + data).pack(),
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 65535)),
        st.floats(width=32),
        st.binary(max_size=100),
    ),
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("fuzzed") / "s") as found:
        yield found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FRAMES, min_size=1, max_size=4), st.booleans())
def test_whatever_comes_the_server_answers_in_frames_and_lives(fuzzed: Served, sent: list[bytes], is_cut: bool) -> None:
    running, _ = fuzzed
    with running.address.connect(5) as raw:
        content = b"".join(sent)
        raw.sendall(content[:-1] if is_cut else content)
        raw.shutdown(socket.SHUT_WR)
        while (answer := receive(raw, 100_000, 5, 5)) is not None:
            assert answer.kind == Kind.ERROR or answer.kind - 128 in set(Kind)
            if answer.kind == Kind.ERROR:
                assert answer.body.decode()
    answers(running.address)
    assert not running.stopped.is_set()
