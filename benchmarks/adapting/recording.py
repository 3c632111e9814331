"""Records what every member takes under a load: in each round, all members run one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.serving.files import Member, OpenPool, load_member

from .loads import Loader, Step

LOOK_S = 0.05
WARM = 20


@dataclass(frozen=True, eq=False)
class Recorded:
    """All members under one load.

    Attributes:
        seconds: of each round, ``[t]``.
        step: number of the load's step in each round, ``[t]``.
        wall, cpu: milliseconds, ``[t, n]``.
        use: share of the core's time that other processes used shortly before each round, ``[t]``.
        how: by which means a quota was held.
    """

    seconds: np.ndarray
    step: np.ndarray
    wall: np.ndarray
    cpu: np.ndarray
    use: np.ndarray
    how: str

    def part(self, begin: int, end: int) -> Recorded:
        """Some rounds."""
        names = [name for name in self.__dataclass_fields__ if name != "how"]
        return Recorded(**{name: getattr(self, name)[begin:end] for name in names}, how=self.how)

    def save(self, path: Path) -> None:
        """Writes one ``.npz``."""
        np.savez_compressed(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def load(cls, path: Path) -> Recorded:
        """Reads what ``save`` wrote."""
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in cls.__dataclass_fields__ if name != "how"}
            return cls(**arrays, how=str(content["how"]))


class Use:
    """Share of one core's time that other processes use, from differences of ``/proc/stat``."""

    def __init__(self, core: int) -> None:
        self._core, self._at, self.value = core, time.perf_counter(), 0.0
        self._busy, self._own = self._read(), time.process_time()

    def _read(self) -> float:
        """Busy seconds of the core."""
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        words = next(line for line in lines if line.startswith(f"cpu{self._core} ")).split()[1:]
        idle = int(words[3]) + int(words[4])
        return (sum(map(int, words)) - idle) / os.sysconf("SC_CLK_TCK")

    def look(self) -> float:
        """The share, measured anew after ``LOOK_S``."""
        now = time.perf_counter()
        if now - self._at >= LOOK_S:
            busy, own = self._read(), time.process_time()
            self.value = float(np.clip(((busy - self._busy) - (own - self._own)) / (now - self._at), 0.0, 1.0))
            self._at, self._busy, self._own = now, busy, own
        return self.value


def timed(net: Any, member: Member, picture: np.ndarray, threads: int) -> tuple[float, float]:
    """Wall and CPU time of one inference, in milliseconds; CPU time is that of each thread."""
    import ncnn

    clock = time.thread_time_ns if threads == 1 else time.process_time_ns
    cpu, wall = clock(), time.perf_counter_ns()
    extractor = net.create_extractor()
    extractor.input(member.input, ncnn.Mat(picture).clone())
    code, output = extractor.extract(member.output)
    np.array(output)
    wall, cpu = time.perf_counter_ns() - wall, (clock() - cpu) // threads
    if code != 0:
        raise RuntimeError(f"ncnn ended the inference of {member.name} with code {code}: is there enough memory?")
    return max(wall, 1) / 1e6, max(cpu, 1) / 1e6


def record(pool: OpenPool, steps: Sequence[Step], seconds: float, core: int) -> Recorded:
    """Records one load; the calling process is pinned to ``core``."""
    members, threads = pool.index.members, pool.index.threads
    nets = [load_member(pool, member) for member in members]
    rng = np.random.default_rng(0)
    pictures = [rng.standard_normal(member.shape).astype(np.float32) for member in members]

    def run(number: int) -> tuple[float, float]:
        return timed(nets[number], members[number], pictures[number], threads)

    for _ in range(WARM):
        for number in range(len(members)):
            run(number)
    times, numbers, rows, uses = [], [], [], []
    use = Use(core)
    with Loader(seconds + 30, core) as loader:
        begun, at = time.perf_counter(), 0
        while (now := time.perf_counter() - begun) < seconds:
            while at + 1 < len(steps) and steps[at + 1].seconds <= now:
                at += 1
            loader.apply(steps[at])
            uses.append(use.look())
            times.append(time.perf_counter() - begun)
            numbers.append(at)
            rows.append([run(number) for number in range(len(members))])
        how = loader.how
    both = np.array(rows)
    return Recorded(np.array(times), np.array(numbers), both[..., 0], both[..., 1], np.array(uses), how)
