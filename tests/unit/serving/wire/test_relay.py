"""The relay: what it hands on, several clients, what is malformed, and connections that break on either side."""

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotailor.profiling.errors import DeviceError
from autotailor.serving import Client, Flag, PoolError, Request
from autotailor.serving.errors import ServerLostError
from autotailor.serving.wire import Address, Relay, relay
from autotailor.serving.wire.frames import HEADER, MAGIC, VERSION, Frame, Kind, receive
from wire_services import Recorder, picture, recorded


@pytest.fixture
def there() -> Iterator[Recorder]:
    """A server elsewhere."""
    with recorded() as found:
        yield found


@pytest.fixture
def here(tmp_path: Path, there: Recorder) -> Iterator[Relay]:
    """What this computer's clients ask."""
    with Relay(Address(tmp_path / "s"), there.connect, Recorder.most_bytes) as made:
        made.start()
        yield made


def answers(address: Address) -> None:
    """A new client still gets answers."""
    with Client(address) as client:
        assert client.infer(picture(2.0)).outputs.tolist() == [4.0] * 4


def test_every_kind_of_request_is_handed_on(here: Relay, there: Recorder) -> None:
    with Client(here.address) as client:
        reply = client.infer(picture(2.0), 7.0)
        assert (reply.member, reply.flags, reply.latency_ms, reply.cpu_ms) == (3, Flag.LATE, 1.5, 1.25)
        np.testing.assert_array_equal(reply.outputs, np.full(4, 4.0, np.float32))
        assert client.status() == here.status() == {"pictures": [2.0]}
        assert client.metrics() == "pictures 1\n"
        assert client.set(deadline_ms=9.0) == there.settings == {"deadline_ms": 9.0}
        client.reload()
    assert there.reloads == 1


def test_files_are_brought_before_the_server_opens_them_through_a_new_connection(
    tmp_path: Path, there: Recorder
) -> None:
    brought: list[int] = []

    def bring() -> int:
        brought.append(there.reloads)
        for each in there.connections:  # the way breaks while files are sent
            each.shutdown(socket.SHUT_RDWR)
        return 8192

    with Relay(Address(tmp_path / "s"), there.connect, Recorder.most_bytes, bring) as made:
        made.start()
        with Client(made.address) as client:
            client.infer(picture(1.0))
            client.reload()
            assert made.most_bytes == 8192
            client.infer(picture(2.0))
    assert (brought, there.reloads) == ([0], 1)


def test_a_pool_that_cannot_be_sent_leaves_the_server_as_it_is(tmp_path: Path, there: Recorder) -> None:
    def fail() -> int:
        raise PoolError("the folder holds no whole pool")

    with Relay(Address(tmp_path / "s"), there.connect, Recorder.most_bytes, fail) as made:
        made.start()
        with Client(made.address) as client:
            for _ in range(2):  # the refusal of the first does not leave the second waiting
                with pytest.raises(PoolError, match="the folder holds no whole pool"):
                    client.reload()
            assert client.infer(picture(1.0)).member == 3
    assert there.reloads == 0


def test_what_the_server_refuses_is_said_and_the_connection_stays(here: Relay) -> None:
    with Client(here.address) as client:
        with pytest.raises(PoolError, match="a negative picture"):
            client.infer(picture(-1.0))
        assert client.infer(picture(1.0)).member == 3


def test_stop_ends_the_relay_and_not_the_server(here: Relay, there: Recorder) -> None:
    with here.address.connect(5) as raw:
        raw.sendall(Frame(Kind.STOP, 7, b"now").pack())
        refused = receive(raw, 5000, 5, 5)
        assert refused is not None
        assert b"has no body" in refused.body
    assert not here.stopped.is_set()
    with Client(here.address) as client:
        client.stop()
    assert here.stopped.wait(5)
    assert not there.is_stopped


def test_a_client_of_tcp_cannot_stop_it(there: Recorder) -> None:
    with Relay(Address(), there.connect, Recorder.most_bytes) as made:
        made.start()
        with Client(made.address) as client, pytest.raises(PoolError, match="only a client of a Unix socket"):
            client.stop()
        assert not made.stopped.is_set()
        answers(made.address)


def test_over_tcp_clients_may_only_ask(there: Recorder) -> None:
    with Relay(Address(), there.connect, Recorder.most_bytes) as made:
        made.start()
        with Client(made.address) as client:
            for change in (lambda: client.set(rate=1.0), client.reload):
                with pytest.raises(PoolError, match="over TCP any user of this computer can connect, and may only ask"):
                    change()
    assert (there.settings, there.reloads) == ({"deadline_ms": 5.0}, 0)


def test_a_silent_client_gives_its_place_to_the_ninth(
    here: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = [here.address.connect(5) for _ in range(8)]
    with Client(here.address) as ninth, pytest.raises(PoolError, match="8 clients"):
        ninth.status()
    monkeypatch.setattr(relay, "PATIENCE_S", 0.05)
    time.sleep(0.1)
    answers(here.address)
    assert silent[0].recv(1) == b""
    for each in silent:
        each.close()


def test_a_broken_connection_costs_one_request(tmp_path: Path, there: Recorder) -> None:
    with Relay(Address(tmp_path / "s"), there.connect, 4096) as made:
        made.start()
        with Client(made.address) as client:
            client.status()
            there.connections[0].shutdown(socket.SHUT_RDWR)
            with pytest.raises(PoolError, match="there: the server has ended the connection"):
                client.status()
            assert client.infer(picture(1.0)).member == 3
    assert len(there.connections) == 2


def test_a_device_that_is_away_is_said_to_the_client(tmp_path: Path) -> None:
    def connect() -> Client:
        raise DeviceError("device phone: it is away")

    with Relay(Address(tmp_path / "s"), connect, 4096) as made:
        made.start()
        with Client(made.address) as client, pytest.raises(PoolError, match="device phone: it is away"):
            client.status()
        with pytest.raises(ServerLostError, match="device phone: it is away"):
            made.status()


def test_an_error_of_the_program_is_no_end_of_the_connection(tmp_path: Path, there: Recorder) -> None:
    def fail() -> int:
        raise ZeroDivisionError

    with Relay(Address(tmp_path / "s"), there.connect, 4096, fail) as made:
        made.start()
        with Client(made.address) as client:
            with pytest.raises(PoolError, match="its log says where"):
                client.reload()
            assert client.infer(picture(1.0)).member == 3


def test_requests_of_several_clients_take_turns_in_the_order_of_their_coming(here: Relay, there: Recorder) -> None:
    there.may_go.clear()

    def ask(value: float) -> None:
        with Client(here.address) as client:
            client.infer(picture(value))

    asking = []
    for value in range(6):
        asking.append(threading.Thread(target=ask, args=(float(value),)))
        asking[-1].start()
        end = time.monotonic() + 60
        while (there.running, here._coming) != (1, value + 1) and time.monotonic() < end:
            time.sleep(0.001)
    there.may_go.set()
    for thread in asking:
        thread.join(60)
    assert there.pictures == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_ninth_client_is_refused_and_a_place_that_is_left_can_be_taken(here: Relay) -> None:
    clients = [Client(here.address) for _ in range(relay.MOST_CLIENTS)]
    for client in clients:
        client.status()
    with Client(here.address) as ninth, pytest.raises(PoolError, match="takes no more"):
        ninth.status()
    clients[0].close()
    end = time.monotonic() + 60
    while len(here._clients) == relay.MOST_CLIENTS and time.monotonic() < end:
        time.sleep(0.001)
    answers(here.address)
    for client in clients:
        client.close()


def test_a_process_without_descriptors_to_spare_accepts_its_client_later(here: Relay) -> None:
    here.status()  # the way to the server is there
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    with socket.socket(socket.AF_UNIX) as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before, 256), most))
        try:
            with suppress(OSError):  # too many open files
                while True:
                    taken.append(os.dup(client.fileno()))
            client.connect(str(here.address.path))
            time.sleep(2 * relay.WAKE_S)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
            for number in taken:
                os.close(number)
        client.sendall(Frame(Kind.METRICS, 5).pack())
        answer = receive(client, 1000, 10.0, 10.0)
    assert answer is not None
    assert answer.body == b"pictures 0\n"
    answers(here.address)


def header(magic: int = MAGIC, version: int = VERSION, kind: int = 1, length: int = 0) -> bytes:
    return HEADER.pack(magic, version, kind, 9, length)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (header(magic=0x47455420) + b"/ HTTP/1.1", "another protocol"),
        (header(version=2), "has version 2"),
        (header(length=4097), "at most 4096 are accepted: resize pictures to the largest member's input before"),
        (header(length=0xFFFFFFFF) + bytes(100_000), "at most 4096"),
    ],
)
def test_a_broken_frame_ends_the_connection_with_an_error(here: Relay, sent: bytes, message: str) -> None:
    with here.address.connect(5) as raw:
        raw.sendall(sent)
        answer = receive(raw, 5000, 5, 5)
        assert answer is not None
        assert answer.kind == Kind.ERROR
        assert message in answer.body.decode()
        assert raw.recv(1) == b""
    answers(here.address)


def test_a_client_that_stops_within_a_frame_loses_its_connection(here: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "PATIENCE_S", 0.05)
    with here.address.connect(5) as raw:
        raw.sendall(header(length=100) + b"half")
        assert raw.recv(1) == b""
    answers(here.address)


def test_a_client_that_has_gone_before_its_answer_keeps_nobody_waiting(here: Relay, there: Recorder) -> None:
    there.may_go.clear()
    raw = here.address.connect(5)
    raw.sendall(Frame(Kind.INFER, 1, Request(picture(1.0)).pack()).pack())
    raw.close()
    there.may_go.set()
    answers(here.address)


FRAMES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda kind, number, body: Frame(kind, number, body).pack(),
        st.integers(7, 65535) | st.sampled_from([Kind.STATUS, Kind.METRICS, Kind.RELOAD]),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=200),
    ),
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    with (
        recorded() as there,
        Relay(Address(tmp_path_factory.mktemp("fuzzed") / "s"), there.connect, Recorder.most_bytes) as made,
    ):
        made.start()
        yield made


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FRAMES, min_size=1, max_size=4), st.booleans())
def test_whatever_comes_it_answers_in_frames_and_lives(fuzzed: Relay, sent: list[bytes], is_cut: bool) -> None:
    with fuzzed.address.connect(5) as raw:
        content = b"".join(sent)
        raw.sendall(content[:-1] if is_cut else content)
        raw.shutdown(socket.SHUT_WR)
        while (answer := receive(raw, 100_000, 5, 5)) is not None:
            assert answer.kind == Kind.ERROR or answer.kind - 128 in set(Kind)
            if answer.kind == Kind.ERROR:
                assert answer.body.decode()
    answers(fuzzed.address)
    assert not fuzzed.stopped.is_set()
