"""The relay: requests reach a server elsewhere, and a broken connection is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from autotailor.profiling.errors import DeviceError
from autotailor.runtime import Client, PoolError
from autotailor.runtime.errors import ServerLostError
from autotailor.runtime.wire import Address, Relay, Request, Server
from wire_services import Recorder, picture, served


@pytest.fixture
def there(tmp_path: Path) -> Iterator[tuple[Server, Recorder]]:
    """A server elsewhere, which takes clients on TCP."""
    with served(Address()) as found:
        yield found


@pytest.fixture
def here(tmp_path: Path, there: tuple[Server, Recorder]) -> Iterator[Server]:
    """A server of this computer that hands everything on."""
    far = there[0].address
    with (
        Relay(lambda: Client("there", connection=far.connect(5.0)), Recorder.most_bytes) as relay,
        Server(relay, Address(tmp_path / "s")) as server,
    ):
        server.start()
        yield server


def test_every_kind_of_request_is_handed_on(here: Server, there: tuple[Server, Recorder]) -> None:
    recorder = there[1]
    with Client(here.address) as client:
        reply = client.infer(picture(2.0), 7.0)
        assert (reply.member, reply.latency_ms) == (3, 1.5)
        np.testing.assert_array_equal(reply.outputs, np.full(4, 4.0, np.float32))
        assert client.status() == {"pictures": [2.0]}
        assert client.metrics() == "pictures 1\n"
        assert client.set(deadline_ms=9.0) == {"deadline_ms": 9.0}
    assert recorder.settings == {"deadline_ms": 9.0}


def test_a_server_elsewhere_opens_its_pool_anew_once_that_is_there(
    tmp_path: Path, there: tuple[Server, Recorder]
) -> None:
    far, first = there
    brought: list[Recorder] = []

    def bring() -> int:
        brought.append(first)
        assert far.service is first
        return 8192

    with (
        Relay(lambda: Client("there", connection=far.address.connect(5.0)), first.most_bytes, bring) as relay,
        Server(relay, Address(tmp_path / "s")) as server,
    ):
        server.start()
        with Client(server.address) as client:
            client.infer(picture(1.0))
            client.reload()
            client.infer(picture(2.0))
            assert relay.most_bytes == 8192
    assert brought == [first]
    assert (first.pictures, first.next.pictures) == ([1.0], [2.0])


def test_what_the_server_refuses_is_said_and_the_connection_stays(here: Server) -> None:
    with Client(here.address) as client:
        with pytest.raises(PoolError, match="a negative picture"):
            client.infer(picture(-1.0))
        assert client.infer(picture(1.0)).member == 3


def test_stop_ends_the_server_of_this_computer_alone(here: Server, there: tuple[Server, Recorder]) -> None:
    with Client(here.address) as client:
        client.stop()
    assert here.stopped.wait(5)
    assert not there[0].stopped.is_set()


def test_a_broken_connection_costs_one_request(tmp_path: Path, there: tuple[Server, Recorder]) -> None:
    made: list[Client] = []

    def connect() -> Client:
        made.append(Client(there[0].address))
        return made[-1]

    with Relay(connect, 4096) as relay:
        relay.status()
        made[0]._connection.close()
        with pytest.raises(ServerLostError, match="the connection failed"):
            relay.status()
        assert relay.infer(Request(picture(1.0))).member == 3
    assert len(made) == 2


def test_a_device_that_is_away_is_said_to_the_client(tmp_path: Path) -> None:
    def connect() -> Client:
        raise DeviceError("device phone: it is away")

    with Relay(connect, 4096) as relay, Server(relay, Address(tmp_path / "s")) as server:
        server.start()
        with Client(server.address) as client, pytest.raises(PoolError, match="device phone: it is away"):
            client.status()
