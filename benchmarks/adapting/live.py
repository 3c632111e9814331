"""What is measured while a pool runs: switches, stalls, memory, the monitor's own time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from autotailor.runtime import Entry, Monitor, Policy, Service, Table, decide
from autotailor.runtime.demo.drive import pictures_for
from autotailor.runtime.files import OpenPool, load_member, open_pool
from autotailor.runtime.serving.engine import Engine
from autotailor.runtime.wire import Request

MEBI = 2**20
Row = tuple[str, float, str]
"""A measure: its name, its value and its unit."""


def decision_us(members: int = 480, seed: int = 0) -> Iterator[Row]:
    """Median time of a decision among so many members, with a monitor that has seen a load."""
    rng = np.random.default_rng(seed)
    entries = [Entry(f"s{i}", 50 + 0.1 * i, tuple(rng.uniform(0.1, 1, 3) * (i + 1))) for i in range(members)]
    table, monitor, policy = Table.of(entries), Monitor(), Policy(100.0, rate=5.0, quota=0.9)
    for _ in range(60):
        split = table.split_ms[rng.integers(members)]
        cpu = float(split.sum()) * rng.uniform(1.2, 1.4)
        monitor = monitor.observed(split, cpu * rng.uniform(1, 1.2), cpu)
    times = []
    for _ in range(500):
        begun = time.perf_counter()
        decide(table, monitor, policy, members // 2)
        times.append(time.perf_counter() - begun)
    yield f"a decision among {members}, median", 1e6 * float(np.median(times)), "µs"


def switches(pool: OpenPool, count: int) -> Iterator[Row]:
    """Switches among all members while inferences run without a pause."""
    members = len(pool.index.members)
    shape = max((member.shape for member in pool.index.members), key=math.prod)
    picture = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    waits, stalls = [], []
    with Engine(pool, members - 1) as engine:
        before = [engine.run(picture).wall_ms for _ in range(30)][-10:]
        for number in range(count):
            target = (number * 7 + 1) % members
            old = engine.active
            times = []
            begun = last = time.perf_counter()
            engine.aim(target, lambda _, old=old: old)
            while True:
                switched = engine.take()
                engine.run(picture)
                now = time.perf_counter()
                times.append(1e3 * (now - last))
                last = now
                if switched or engine.active == engine.target:
                    break
            if target != old:
                waits.append(1e3 * (now - begun))
            after = [engine.run(picture).wall_ms for _ in range(5)]
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


def growth(pool: OpenPool, count: int) -> Iterator[Row]:
    """Growth of the process over so many switches, and whether outputs are still the same."""
    process = psutil.Process()
    members = len(pool.index.members)
    shape = max((member.shape for member in pool.index.members), key=math.prod)
    picture = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    with Engine(pool, 0) as engine:

        def answers() -> list[np.ndarray]:
            found = []
            for number in range(members):
                engine.aim(number, min)
                engine.wait(60)
                engine.take()
                found.append(engine.run(picture).outputs)
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
        begun, before = time.perf_counter(), service.chooser.pace.spent_s
        while time.perf_counter() - begun < seconds:
            service.infer(Request(picture))
        spent = service.chooser.pace.spent_s - before
        yield "the monitor's own CPU", 100 * spent / (time.perf_counter() - begun), "%"


def measures(folder: Path, count: int) -> list[Row]:
    """All live measures of a pool."""
    pool = open_pool(folder)
    return [
        *decision_us(),
        *memory(pool),
        *switches(pool, 60),
        *growth(pool, count),
        *own_time(folder, 5.0),
    ]
