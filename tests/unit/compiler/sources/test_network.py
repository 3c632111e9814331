"""Weights that cannot be fetched: said soon, and in words that help."""

import http.server
import threading
import time
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from autotailor.compiler.sources import network
from autotailor.compiler.sources import source as sources
from autotailor.ir.errors import GraphError

NOWHERE = "http://127.0.0.1:9"  # the port of `discard`: nothing listens there


class Silent(http.server.BaseHTTPRequestHandler):
    """Answers everything with 404."""

    def do_HEAD(self) -> None:
        self.send_error(404)

    do_GET = do_HEAD

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()
    listening.server_close()


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", NOWHERE)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(GraphError, match=f"resnet10t.*{NOWHERE} does not answer.*model.weights.*onnx.*random-weights"):
        sources.create_network("timm:resnet10t")
    assert not pauses
    assert not constants.HF_HUB_OFFLINE


def test_a_hub_that_answers_is_used(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", server)
    with network.hub():
        assert not constants.HF_HUB_OFFLINE


def test_offline_by_choice_stays_so(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", server)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with network.hub():
        assert constants.HF_HUB_OFFLINE
    assert constants.HF_HUB_OFFLINE
