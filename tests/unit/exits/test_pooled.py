"""Exported SubNets with exits as a pool: what is written, and what the server answers from it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from autotailor.serving import Flag, Request, Service
from exit_pools import ExitPool, exit_pool
from served import serve_binary


@pytest.fixture(scope="module")
def pool(net: Any, headed: Any, tmp_path_factory: pytest.TempPathFactory) -> ExitPool:
    """A pool of one member with two exits."""
    serve_binary()
    return exit_pool(net, headed, tmp_path_factory.mktemp("exits"))


@pytest.fixture
def service(pool: ExitPool) -> Iterator[Service]:
    with Service.of(pool.folder, 1000.0, thresholds=None) as made:
        yield made


def test_each_exit_answers_as_pytorch(pool: ExitPool, service: Service) -> None:
    for number, name in enumerate(("first", "second", "none")):
        service.set({"thresholds": name})
        for row, image in enumerate(pool.images):
            reply = service.infer(Request(image))
            assert (reply.exit, Flag.EARLY in reply.flags) == (number, number < 2)
            np.testing.assert_allclose(reply.outputs, pool.answers[number][row], rtol=1e-4, atol=1e-4)
