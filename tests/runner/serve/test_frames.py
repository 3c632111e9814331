"""The server against its clients: two at once, gone ones, malformed and huge frames."""

import json
import re
import resource
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from compiled import compiled
from pools import SIDES, TinyPool, tiny_pool
from served import (
    ERROR,
    HEADER,
    INFER,
    MAGIC,
    METRICS,
    OPEN,
    RELOAD,
    REPLY,
    SET,
    STATUS,
    STOP,
    Client,
    Refused,
    Serving,
    infer_body,
    ncnn_headers,
)

LARGEST = max(SIDES)
IMAGE = np.random.default_rng(5).normal(size=(3, LARGEST, LARGEST)).astype(np.float32)
NUMBER = len(SIDES) - 1
NAME = f"member_{NUMBER:02}"
OPTIONS = ("--deadline-ms", "1000", "--pin", NAME)
MOST = 3 * LARGEST * LARGEST * 4 + (64 << 10)


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def assert_alive(server: Serving, pool: TinyPool) -> None:
    with server.client() as client:
        np.testing.assert_allclose(client.infer(IMAGE).outputs, pool.logits(NAME, IMAGE), atol=1e-4)


def test_two_clients_take_turns(command: tuple[str, ...], pool: TinyPool) -> None:
    wrong: list[str] = []
    with Serving(command, pool.folder, *OPTIONS) as server:

        def ask(seed: int) -> None:
            rng = np.random.default_rng(seed)
            with server.client() as client:
                for _ in range(60):
                    image = rng.normal(size=IMAGE.shape).astype(np.float32)
                    if not np.allclose(client.infer(image).outputs, pool.logits(NAME, image), atol=1e-4):
                        wrong.append(f"client {seed}")

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with server.client() as client:
            assert client.status()["counters"]["inferences"] == 120
    assert wrong == []


def test_a_client_that_asks_much_at_once_does_not_keep_another_one_waiting(
    command: tuple[str, ...], pool: TinyPool
) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as greedy, server.client() as modest:
        sent = [greedy.send(INFER, infer_body(IMAGE)) for _ in range(20)]
        modest.infer(IMAGE)
        assert [greedy.receive()[1] for _ in sent] == sent
        modest.infer(IMAGE)


def test_a_server_with_a_lease_ends_when_nobody_has_asked_for_so_long(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, "--lease-s", "2") as server, server.client() as client:
        begin = time.monotonic()
        while time.monotonic() < begin + 3:  # longer than the lease, which each request renews
            client.status()
            time.sleep(0.02)
        with server.client():  # a client that asks nothing renews no lease
            _, said = server.process.communicate(timeout=60)
    assert time.monotonic() - begin > 5
    assert said == "no request has come for 2 s (--lease-s), so that the server has ended\n"


def test_a_client_that_is_gone_in_the_middle_costs_nobody_else(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        before = server.descriptors()
        whole = HEADER.pack(MAGIC, 1, INFER, 1, len(infer_body(IMAGE))) + infer_body(IMAGE)
        for length in (1, 10, HEADER.size, HEADER.size + 5, len(whole) - 1, len(whole)):
            with server.client() as client:
                client.socket.sendall(whole[:length])
            assert_alive(server, pool)
        with server.client() as reset:
            reset.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: the connection ends at once
            reset.socket.sendall(whole)
        assert_alive(server, pool)
        for _ in range(500):  # until the server has seen that the last client is gone
            if server.descriptors() == before:
                break
            time.sleep(0.02)
        else:
            raise AssertionError("the server keeps the descriptors of clients that are gone")


def test_a_client_that_sends_its_last_request_gets_an_answer(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        sent = client.send(INFER, infer_body(IMAGE))
        client.socket.shutdown(1)
        assert client.receive()[:2] == (INFER + REPLY, sent)
        with pytest.raises(EOFError):
            client.receive()


PATIENCE = r"""
#include <time.h>

static time_t ahead = 0;
static int moved(clockid_t clock, timespec* time) {
    const int code = clock_gettime(clock, time);
    time->tv_sec += ahead;
    return code;
}

#include <condition_variable>
#include <future>
#include <thread>
#define clock_gettime moved
#include "engine/clock.h"
#undef clock_gettime
#include "wire/server.h"

int main() {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
    Connection client(ends[0]);
    const std::string request = packed_frame(kind_status, 7, ""), part = request.substr(0, 9);
    Frame frame;
    send(ends[1], request.data(), request.size(), 0);
    client.read(100);
    client.is_queued = client.next(100, frame);
    ahead = 60;
    std::printf("%d%d", client.is_queued, client.is_stuck());
    client.is_queued = false;
    client.drop(frame);
    send(ends[1], part.data(), part.size(), 0);
    client.read(100);
    std::printf("%d", client.is_stuck());
    ahead = 120;
    std::printf("%d", client.is_stuck());
}
"""


def test_a_client_that_waits_for_its_turn_is_not_taken_for_a_stuck_one(tmp_path: Path) -> None:
    """Eight clients of a network that takes five seconds wait for longer than a client may pause within a frame."""
    program = compiled(tmp_path, PATIENCE, *ncnn_headers(), "-fopenmp")
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert (
        said == "1001"
    )  # queued, not stuck; a part of a frame, not stuck; stuck when the part has been there for long


def test_a_silent_client_gives_its_place_to_the_ninth(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS, "--idle-s", "0.2") as server:
        clients = [server.client() for _ in range(8)]
        for client in clients:
            client.infer(IMAGE)
        time.sleep(0.3)
        for client in clients[1:]:
            client.infer(IMAGE)
        with server.client() as ninth:
            ninth.infer(IMAGE)
            kind, _, body = clients[0].receive()
            assert (kind, "asked nothing for long" in body.decode()) == (ERROR, True)
            with server.client() as tenth:  # the others have asked just now
                kind, _, body = tenth.receive()
                assert (kind, "8 clients" in body.decode()) == (ERROR, True)


def test_over_tcp_only_who_knows_the_key_may_change_something(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS, port=True) as server, server.client() as client:
        assert re.fullmatch("[0-9a-f]{32}", server.key)
        for change in (lambda: client.set(rate=1), lambda: client.ask(RELOAD)):
            with pytest.raises(Refused, match="over TCP any user of this computer can connect, and may only ask"):
                change()
        for wrong in (b"", b"0" * 32, server.key.encode()[:-1]):
            with pytest.raises(Refused, match="not the server's key"):
                client.ask(OPEN, wrong)
        assert client.ask(OPEN, server.key.encode()) == b""
        assert client.set(rate=1)["rate"] == 1
        client.ask(RELOAD)
        with server.client() as another, pytest.raises(Refused, match="may only ask"):
            another.set(rate=2)


def test_the_ninth_client_is_told_that_there_are_eight(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        clients = [server.client() for _ in range(8)]
        for client in clients:
            client.infer(IMAGE)
        with server.client() as ninth:
            kind, _, body = ninth.receive()
            assert (kind, "8 clients" in body.decode()) == (ERROR, True)
        for client in clients:
            client.socket.close()
        assert_alive(server, pool)


def test_without_a_descriptor_to_spare_it_is_idle_and_accepts_its_client_later(
    command: tuple[str, ...], pool: TinyPool
) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        assert_alive(server, pool)
        process = psutil.Process(server.process.pid)
        limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (process.num_fds(), limits[1]))
        with server.client() as client:
            before = sum(process.cpu_times()[:2])
            time.sleep(1.0)
            assert sum(process.cpu_times()[:2]) - before < 0.3
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits)
            np.testing.assert_allclose(client.infer(IMAGE).outputs, pool.logits(NAME, IMAGE), atol=1e-4)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "another protocol"),
        (HEADER.pack(MAGIC, 2, STATUS, 1, 0), "version 2, expected 1"),
        (HEADER.pack(MAGIC, 1, INFER, 1, MOST + 1), f"at most {MOST} are accepted: resize pictures"),
        (HEADER.pack(MAGIC, 1, INFER, 1, 0xFFFFFFFF), f"announces {0xFFFFFFFF} bytes"),
    ],
    ids=["http", "version", "above the limit", "four gigabytes"],
)
def test_broken_framing_ends_the_connection(
    command: tuple[str, ...], pool: TinyPool, frame: bytes, message: str
) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        with server.client() as client:
            client.socket.sendall(frame)
            kind, _, body = client.receive()
            assert kind == ERROR
            assert message in body.decode()
            with pytest.raises((EOFError, ConnectionResetError)):
                client.receive()
        assert_alive(server, pool)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (INFER, b"", "at least 12"),
        (INFER, infer_body(IMAGE)[:-4], "bytes behind a zero"),
        (INFER, infer_body(IMAGE) + bytes(4), "bytes behind a zero"),
        (INFER, struct.pack("<fHHHH", 0, 65535, 65535, 65535, 0), "65535x65535x65535"),
        (INFER, infer_body(IMAGE[:, :5, :5]), "the size 3x5x5, and members take 3x8x8"),
        (INFER, infer_body(IMAGE[:1]), "the size 1x"),
        (INFER, infer_body(IMAGE, -1.0), "deadline is no time"),
        (INFER, infer_body(IMAGE, float("nan")), "deadline is no time"),
        (INFER, infer_body(IMAGE, float("inf")), "deadline is no time"),
        (STATUS, b"x", "has no body"),
        (SET, b"[1]", "JSON object"),
        (SET, b'{"deadline_ms": ' + b"[" * 5000 + b"}", "JSON object"),
        (SET, b'{"deadline_ms": 1e999}', "JSON object"),
        (SET, b'{"deadline_ms": NaN}', "JSON object"),
        (SET, b'{"deadline_ms": 1', "JSON object"),
        (SET, b"\xff\xfe", "JSON object"),
        (0, b"", "kind 0 is unknown"),
        (77, b"abc", "kind 77 is unknown"),
        (65535, b"", "kind 65535 is unknown"),
    ],
)
def test_a_wrong_request_is_refused_and_the_connection_stays(
    command: tuple[str, ...], pool: TinyPool, kind: int, body: bytes, message: str
) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        with pytest.raises(Refused, match=re.escape(message)):
            client.ask(kind, body)
        np.testing.assert_allclose(client.infer(IMAGE).outputs, pool.logits(NAME, IMAGE), atol=1e-4)
        assert client.status()["counters"]["errors"] == 1


@pytest.mark.parametrize("seed", range(4))
def test_random_frames_end_nothing_but_their_connection(command: tuple[str, ...], pool: TinyPool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    valid = HEADER.pack(MAGIC, 1, INFER, 7, len(infer_body(IMAGE))) + infer_body(IMAGE)
    settings = b'{"deadline_ms": 5, "pin": null, "quota": 0.5}'
    with Serving(command, pool.folder, *OPTIONS) as server:
        for turn in range(120):
            if turn % 4 == 0:
                content = rng.bytes(int(rng.integers(1, 3000)))
            elif turn % 4 == 1:  # a frame whose kind and body are random
                body = rng.bytes(int(rng.integers(0, 300)))
                kind = int(rng.choice([INFER, STATUS, METRICS, SET, 9]))
                content = HEADER.pack(MAGIC, 1, kind, 1, len(body)) + body
            elif turn % 4 == 2:  # a valid frame with some bytes changed
                changed = bytearray(valid)
                for place in rng.integers(0, 40, 3):
                    changed[place] = int(rng.integers(256))
                content = bytes(changed)
            else:  # settings with some bytes changed; the deadline and the pin must not stay changed
                changed = bytearray(settings)
                changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
                content = HEADER.pack(MAGIC, 1, SET, 1, len(changed)) + bytes(changed)
            with server.client() as client:
                client.socket.sendall(content)
                client.socket.shutdown(1)
                while client.socket.recv(1 << 16):  # until the server has answered all and ended the connection
                    pass
        with server.client() as client:
            client.set(pin=NAME)
            np.testing.assert_allclose(client.infer_with(NUMBER, IMAGE).outputs, pool.logits(NAME, IMAGE), atol=1e-4)


def test_metrics_are_prometheus_text(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        for _ in range(3):
            client.infer(IMAGE)
        lines = client.ask(METRICS).decode().splitlines()
        sample = re.compile(r'autotailor_[a-z_]+(\{[a-z]+="[^"]*"\})? (-?[0-9.]+(e[+-]?\d+)?|NaN)')
        assert all(
            line.startswith(("# HELP autotailor_", "# TYPE autotailor_")) or sample.fullmatch(line) for line in lines
        )
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        assert values[f'autotailor_inferences_total{{member="{NAME}"}}'] == "3"
        assert values['autotailor_latency_over_deadline_bucket{le="+Inf"}'] == "3"
        assert values[f'autotailor_active{{member="{NAME}"}}'] == "1"
        assert float(values["autotailor_monitor_cpu_seconds"]) > 0


def test_stop_ends_the_server_and_its_socket(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        with server.client() as client:
            assert client.ask(STOP) == b""
        assert server.process.wait(60) == 0
        assert not server.path.exists()


def test_over_tcp_it_is_local_and_cannot_be_stopped(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS, port=True) as server:
        assert isinstance(server.address, int)
        assert_alive(server, pool)
        with server.client() as client, pytest.raises(Refused, match="only a client of a Unix socket"):
            client.ask(STOP)
        assert_alive(server, pool)


def test_sigterm_ends_it_with_its_status(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        assert_alive(server, pool)
        server.process.send_signal(signal.SIGTERM)
        said, _ = server.process.communicate(timeout=60)
        assert json.loads(said)["counters"]["inferences"] == 1
        assert not server.path.exists()


def test_it_ends_in_order_where_nobody_reads_what_it_says(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert not server.path.exists()
        server.process.stdout = None


@pytest.mark.parametrize("seed", range(5))
def test_killed_in_a_switch_it_starts_again(command: tuple[str, ...], pool: TinyPool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with Serving(command, pool.folder, "--deadline-ms", "1000") as server, Client(server.path) as client:
        for turn in range(int(rng.integers(1, 30))):
            client.set(pin=f"member_{turn % 3:02}")
            client.infer(IMAGE)
        client.send(SET, b'{"pin": "member_01"}')
        server.kill()
    assert server.path.exists(), "a killed server leaves its socket"
    with Serving(command, pool.folder, *OPTIONS) as again:
        assert_alive(again, pool)
