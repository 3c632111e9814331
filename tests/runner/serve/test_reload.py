"""A pool that takes another one's place while the server answers."""

import shutil
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.serving.files import Index
from pools import SIDES, TinyPool, tiny_pool
from served import REPLY, Client, Refused, Serving

LARGEST = max(SIDES)
IMAGE = np.random.default_rng(5).normal(size=(3, LARGEST, LARGEST)).astype(np.float32)
RELOAD = 6
OPTIONS = ("--deadline-ms", "1000")


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def replaced(pool: TinyPool) -> TinyPool:
    """Another pool in the folder of a pool; the socket stays."""
    for path in pool.folder.iterdir():
        if path.name != "serve.sock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    made = tiny_pool(pool.folder.parent / "other", seed=1)
    for path in made.folder.iterdir():
        path.rename(pool.folder / path.name)
    return TinyPool(pool.folder, made.weights)


def is_of(pool: TinyPool, outputs: np.ndarray) -> bool:
    return np.allclose(outputs, pool.logits("member_02", IMAGE), atol=1e-4)


def is_free(client: Client) -> bool:
    """Whether the server opens no pool, but that of this request."""
    try:
        client.ask(RELOAD)
    except Refused:
        return False
    return True


def test_no_request_is_lost_while_a_new_pool_takes_the_place(command: tuple[str, ...], pool: TinyPool) -> None:
    wrong: list[np.ndarray] = []
    is_over = threading.Event()
    with Serving(command, pool.folder, *OPTIONS) as server:
        new = replaced(pool)

        def ask() -> None:
            with server.client() as client:
                while not is_over.is_set():
                    outputs = client.infer(IMAGE).outputs
                    if not (is_of(pool, outputs) or is_of(new, outputs)):
                        wrong.append(outputs)

        asking = threading.Thread(target=ask)
        asking.start()
        with server.client() as client:
            client.set(quantile=0.9, pin="member_02")
            assert is_of(pool, client.infer(IMAGE).outputs)
            for _ in range(3):
                client.ask(RELOAD)
                client.infer_with(2, IMAGE)
                assert is_of(new, client.infer_with(2, IMAGE).outputs)
            settings = client.status()["settings"]
        is_over.set()
        asking.join()
    assert wrong == []
    assert (settings["quantile"], settings["pin"]) == (0.9, None)


def test_what_was_learnt_of_the_load_stays(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        for _ in range(20):
            client.infer(IMAGE)
        before = client.status()["load"]
        client.ask(RELOAD)
        assert client.status()["load"] == before
        assert client.status()["counters"]["inferences"] == 0


def test_a_pool_that_cannot_take_the_place_leaves_the_old_one(command: tuple[str, ...], pool: TinyPool) -> None:
    text = pool.folder / "pool.txt"
    index = Index.parse(text.read_bytes())
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        for content, message in (
            (
                replace(index, model="other").text(),
                "the new pool is of other on host with 4 outputs",
            ),
            (replace(index, members=index.members[:2]).text(), "no member of the new pool takes pictures of 3x12x12"),
            ("cut", "is cut off, or is no pool"),
        ):
            text.write_text(content, encoding="utf-8")
            with pytest.raises(Refused, match=message):
                client.ask(RELOAD)
            assert is_of(pool, client.infer_with(2, IMAGE).outputs)
        with pytest.raises(Refused, match="a request of kind 6 has no body, and 1 bytes came"):
            client.ask(RELOAD, b"x")


def test_a_client_that_goes_while_its_pool_is_opened_costs_nothing(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        with server.client() as gone:
            gone.send(RELOAD)
        with server.client() as client:
            assert is_of(pool, client.infer_with(2, IMAGE).outputs)
            while not is_free(client):
                time.sleep(0.02)
            before = server.descriptors()
            for _ in range(5):
                client.ask(RELOAD)
            assert server.descriptors() <= before
            assert is_of(pool, client.infer_with(2, IMAGE).outputs)


def test_a_client_that_sends_nothing_more_hears_that_the_pool_is_open(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        sent = client.send(RELOAD)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.receive()[:2] == (RELOAD + REPLY, sent)
        with pytest.raises(EOFError):
            client.receive()


def test_what_a_client_sets_while_the_pool_is_opened_stays(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client, server.client() as other:
        for quantile in (0.6, 0.7, 0.8):
            client.send(RELOAD)
            other.set(quantile=quantile)
            assert client.receive()[0] == RELOAD + REPLY
            assert client.status()["settings"]["quantile"] == quantile


def test_another_client_is_told_that_the_pool_is_being_opened(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server, server.client() as client:
        numbers = [client.send(RELOAD) for _ in range(2)]
        answers = sorted((client.receive() for _ in numbers), key=lambda answer: answer[1])
        assert answers[0][0] == RELOAD + REPLY
        assert b"the pool is being opened already" in answers[1][2]
        client.ask(RELOAD)
