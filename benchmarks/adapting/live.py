"""What is measured while a pool runs: switches, stalls, memory, the monitor's own time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from autotailor.serving import Replay, Reply, Request, Service
from autotailor.serving.demo.drive import pictures_for
from autotailor.serving.files import Member, OpenPool, load_member, open_pool

MEBI = 2**20
LONG_MS = 1e6
"""A deadline that each member meets: what runs is what is pinned."""
Row = tuple[str, float, str]
"""A measure: its name, its value and its unit."""


def decision_us(members: int = 480, seed: int = 0) -> Iterator[Row]:
    """Median time of a decision among so many members, called from Python, with a monitor that has seen a load."""
    rng = np.random.default_rng(seed)
    splits = rng.uniform(0.1, 1, (members, 3)) * np.arange(1, members + 1)[:, None]
    hashes = "0" * 64, "0" * 64
    table = [
        Member(f"s{i}", 50 + 0.1 * i, tuple(split), 1, math.nan, "in0", (3, 8, 8), "out0", 4, *hashes)
        for i, split in enumerate(splits.tolist())
    ]
    replay = Replay(table, deadline_ms=100.0, rate=5.0, quota=0.9)
    for number in rng.integers(members, size=60).tolist():
        cpu = float(splits[number].sum()) * rng.uniform(1.2, 1.4)
        replay.ran(number, cpu * rng.uniform(1, 1.2), cpu)
    times = []
    for _ in range(500):
        begun = time.perf_counter()
        replay.choose(members // 2)
        times.append(time.perf_counter() - begun)
    yield f"a decision among {members}, median", 1e6 * float(np.median(times)), "µs"


def ran(service: Service, picture: np.ndarray) -> Reply:
    return service.infer(Request(picture))


def switches(folder: Path, count: int) -> Iterator[Row]:
    """Switches among all members while inferences run without a pause."""
    waits, stalls = [], []
    with Service.of(folder, LONG_MS) as service:
        picture, members = pictures_for(service)[0], len(service.names)
        before = [ran(service, picture).latency_ms for _ in range(30)][-10:]
        for number in range(count):
            target, times = (number * 7 + 1) % members, []
            old = ran(service, picture).member
            begun = last = time.perf_counter()
            service.set({"pin": service.names[target]})
            while True:
                member = ran(service, picture).member
                now = time.perf_counter()
                times.append(1e3 * (now - last))
                last = now
                if member == target:
                    break
            if target != old:
                waits.append(1e3 * (now - begun))
            after = [ran(service, picture).latency_ms for _ in range(5)]
            stalls.append(max(times) - max(float(np.median(before)), float(np.median(after))))
            before = after
    yield "decision to first inference on another member, median", float(np.median(waits)), "ms"
    yield "decision to first inference on another member, 95 %", float(np.quantile(waits, 0.95)), "ms"
    yield "stall at a switch beyond the slower member, median", float(np.median(stalls)), "ms"
    yield "stall at a switch beyond the slower member, 95 %", float(np.quantile(stalls, 0.95)), "ms"


def memory(pool: OpenPool) -> Iterator[Row]:
    """What members take once they are loaded, as a share of the largest member's weights."""
    process = psutil.Process()
    largest = pool.size(pool.index.members[-1])
    nets = [load_member(pool, pool.index.members[-1])]
    alone = process.memory_info().rss
    for member in (pool.index.members[0], pool.index.members[len(pool.index.members) // 2]):
        nets.append(load_member(pool, member))
    three = process.memory_info().rss
    yield "three loaded members against the largest alone (whole process)", three / alone, "times"
    for member in pool.index.members:
        pool.pieces(member)
    described = process.memory_info().rss
    yield (
        "each further member that is not loaded, of the largest's weights",
        100 * (described - three) / len(pool.index.members) / largest,
        "%",
    )


def growth(folder: Path, count: int) -> Iterator[Row]:
    """Growth of the process over so many switches, and whether outputs are still the same."""
    process = psutil.Process()
    with Service.of(folder, LONG_MS) as service:
        picture, members = pictures_for(service)[0], len(service.names)

        def answers() -> list[np.ndarray]:
            found = []
            for number in range(members):
                service.set({"pin": service.names[number]})
                while (reply := ran(service, picture)).member != number:
                    pass
                found.append(reply.outputs)
            return found

        first = answers()
        for _ in range(max(2, 200 // members)):  # allocators keep what they have once needed
            answers()
        begun = process.memory_info().rss
        for _ in range(count // members):
            last = answers()
        grown = process.memory_info().rss - begun
    differ = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(first, last, strict=True))
    yield f"growth over {count // members * members} switches", grown / MEBI, "MiB"
    yield "largest relative difference of the outputs after them", differ, ""


def own_time(folder: Path, seconds: float) -> Iterator[Row]:
    """The monitor's share of the time, with inferences that run without a pause."""
    with Service.of(folder) as service:
        picture = pictures_for(service)[0]
        begun, before = time.perf_counter(), service.status()["monitor_cpu_seconds"]
        while time.perf_counter() - begun < seconds:
            ran(service, picture)
        spent = service.status()["monitor_cpu_seconds"] - before
        yield "the monitor's own CPU", 100 * spent / (time.perf_counter() - begun), "%"


def measures(folder: Path, count: int) -> list[Row]:
    """All live measures of a pool."""
    pool = open_pool(folder)
    return [
        *decision_us(),
        *memory(pool),
        *switches(folder, 60),
        *growth(folder, count),
        *own_time(folder, 5.0),
    ]
