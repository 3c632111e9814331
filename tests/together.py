"""Runs a function in several processes that can train together, for tests."""

import multiprocessing
import os
import pickle
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

CONTEXT = multiprocessing.get_context("forkserver")
"""A process that has run a backward pass cannot be forked; this server has imported modules and run nothing."""
CONTEXT.set_forkserver_preload(
    [
        "autotailor.finetuning.weight_sharing",
        "networks",
        "tiny_data",
        "torch._dynamo",
        "torch.distributed.tensor",
        "scipy.optimize",
        "scipy.stats",
    ]
)
SECONDS = 240.0


@dataclass(frozen=True)
class Ended:
    """What became of one process: its exit status (negative for a signal), and what the function has returned."""

    status: int | None
    result: Any = None


def run(function: Callable[..., Any], *arguments: Any, processes: int = 2) -> list[Ended]:
    """Runs a function of a module in so many processes at once; what became of each, in the order of their ranks."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        results = [Path(folder) / str(rank) for rank in range(processes)]
        started = [
            CONTEXT.Process(target=_one, args=(rank, processes, port, path, function, arguments))
            for rank, path in enumerate(results)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join(SECONDS)
            process.kill()
            process.join()
        found = [pickle.loads(path.read_bytes()) if path.exists() else None for path in results]
    return [Ended(process.exitcode, result) for process, result in zip(started, found, strict=True)]


def results(function: Callable[..., Any], *arguments: Any, processes: int = 2) -> list[Any]:
    """What a function returns in each process; all processes must end well."""
    ended = run(function, *arguments, processes=processes)
    assert [each.status for each in ended] == [0] * processes
    return [each.result for each in ended]


def _one(rank: int, size: int, port: int, path: Path, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    path.write_bytes(pickle.dumps(function(*arguments)))
