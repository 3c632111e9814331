"""Measures the server of pools in C++ (``autotailor-serve``): decisions, switches, stalls, memory.

    python benchmarks/serving.py results/resnet_digits/host/pool

The time of a decision comes from a program that is compiled with the server's headers; all else from a server of the
pool that this program starts and asks through its socket. Nothing else should run on the machine. Prints a table, and
writes ``serving.csv`` beside this file; needs ``make serve TARGETS=host``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from autotailor.project import places
from autotailor.serving import Client
from autotailor.serving.files import INDEX, MEMBERS, NORMS, WEIGHTS, Index, Member, open_pool

SOURCES = places.RUNNER_SOURCES / "serve"
BINARY = places.runner_builds() / "host" / "autotailor-serve"
MEBI = 2**20
DECISIONS = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include "choice/choice.h"
template <class Function> double median_us(int count, Function function) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        function(i);
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::nth_element(times.begin(), times.begin() + count / 2, times.end());
    return times[static_cast<size_t>(count) / 2];
}
int main(int, char** words) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(0.0, 2.0);
    std::vector<Entry> entries(static_cast<size_t>(std::atoi(words[1])));
    for (Entry& entry : entries) {
        entry.accuracy = 50 + 20 * uniform(random);
        for (double& each : entry.split_ms) each = uniform(random);
    }
    Chooser chooser(entries);
    Monitor monitor;
    Policy policy;
    policy.rate = 100;
    policy.quota = 0.9;
    size_t active = 0;
    const double learnt = median_us(5000, [&](int) {
        const double split[3] = {uniform(random), uniform(random), uniform(random)};
        const double cpu = 1.2 * split[0] + 1.9 * split[1] + split[2];
        monitor.observe(split, cpu * (1 + 0.1 * uniform(random)), cpu);
    });
    const double decided = median_us(5000, [&](int i) {
        policy.deadline_ms = 1 + i % 7;
        active = chooser.decide(monitor, policy, active, 9.0).row;
    });
    std::printf("%.3f %.3f\n", decided, learnt);
    return active > entries.size();
}
"""


def decision_us(members: int) -> tuple[float, float]:
    """Median microseconds of a decision among members, and of learning from one inference."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "decisions.cpp"), Path(folder, "decisions")
        source.write_text(DECISIONS)
        subprocess.run(["g++", "-std=c++17", "-O2", "-I", SOURCES, "-o", program, source], check=True)
        said = subprocess.run([program, str(members)], check=True, capture_output=True, text=True).stdout
    decided, learnt = map(float, said.split())
    return decided, learnt


@contextmanager
def serving(pool: Path, *options: str) -> Iterator[tuple[Client, psutil.Process]]:
    """A client of a server that runs while the context is open."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        words = [BINARY, pool, "--socket", path, "--deadline-ms", "100000", *options]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()  # it listens
        with Client(path) as client:
            yield client, psutil.Process(process.pid)
            client.stop()
        process.communicate()


def memory_mb(process: psutil.Process) -> float:
    """Memory that no file backs, MiB."""
    return sum(each.private_dirty for each in process.memory_maps()) / MEBI


def switches(pool: Path, index: Index, count: int) -> dict[str, float]:
    """Switches between members that must be prepared each time, while requests go on."""
    pictures = {member.name: np.zeros(member.shape, dtype=np.float32) for member in index.members}
    largest = index.members[-3:]
    first_ms, stalls_ms, usual = [], [], {member.name: 0.0 for member in largest}
    with serving(pool) as (client, process):
        for member in largest:
            client.set(pin=member.name)
            number = index.members.index(member)
            while client.infer(pictures[member.name]).member != number:
                pass
            times = [client.infer(pictures[member.name]).latency_ms for _ in range(50)]
            usual[member.name] = float(np.median(times))
        before, begun = memory_mb(process), time.perf_counter()
        for turn in range(count):
            member = largest[turn % len(largest)]
            number = index.members.index(member)
            client.set(pin=member.name)
            decided = time.perf_counter()
            while True:
                answer = client.infer(pictures[member.name])
                stalls_ms.append(answer.latency_ms)
                if answer.member == number:
                    break
            first_ms.append((time.perf_counter() - decided) * 1e3)
        seconds = time.perf_counter() - begun
        status = client.status()
        time.sleep(0.5)
        return {
            "decision to first inference on another member, ms (median)": float(np.median(first_ms)),
            "decision to first inference on another member, ms (99 %)": float(np.quantile(first_ms, 0.99)),
            "preparation of a member, ms (mean)": status["counters"]["mean_preparation_ms"],
            "usual inference of the slowest member, ms": max(usual.values()),
            "inference beside a preparation, ms (99 %)": float(np.quantile(stalls_ms, 0.99)),
            "inference beside a preparation, ms (most)": max(stalls_ms),
            f"growth of memory over {count} switches, MiB": memory_mb(process) - before,
            "monitor and choice, share of the time": status["monitor_cpu_seconds"] / seconds,
        }


def settled_mb(pool: Path, member: Member) -> float:
    """Memory of a server that runs one member, once it has let go of all that it needs no more, MiB."""
    with serving(pool, "--pin", member.name, "--keep-s", "0") as (client, process):
        picture = np.zeros(member.shape, dtype=np.float32)
        while client.infer(picture) and client.status()["active"] != member.name:
            time.sleep(0.01)
        time.sleep(3)  # the server tidies once a second
        return memory_mb(process)


def of_some(pool: Path, index: Index, members: Sequence[Member], folder: Path) -> Path:
    """A pool of some members of a pool, in a folder of links to the pool's files."""
    folder.mkdir()
    (folder / INDEX).write_text(replace(index, members=tuple(members)).text(), encoding="utf-8")
    for name in (WEIGHTS, NORMS, MEMBERS):
        (folder / name).symlink_to((pool / name).resolve())
    return folder


def memory(pool: Path, index: Index) -> dict[str, float]:
    """Memory of a pool that runs its largest member, against pools of fewer members."""
    largest, smallest = index.members[-1], index.members[0]
    largest_mb = open_pool(pool).size(largest) / MEBI
    with tempfile.TemporaryDirectory() as folder:
        pools = {
            "alone": of_some(pool, index, [largest], Path(folder, "alone")),
            "two": of_some(pool, index, [smallest, largest], Path(folder, "two")),
            "all": pool,
        }
        found = {name: settled_mb(each, largest) for name, each in pools.items()}
    further = (found["all"] - found["two"]) / (len(index.members) - 2)
    return {
        "weights of the largest member, MiB": largest_mb,
        "memory of a pool of the largest member alone, MiB": found["alone"],
        "memory with the smallest member beside it, MiB": found["two"],
        f"memory with all {len(index.members)} members, MiB": found["all"],
        "each further member, share of the largest's weights": further / largest_mb,
        "idle pool, times the largest member alone": found["all"] / found["alone"],
    }


def main() -> None:
    """Prints the table and writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--switches", type=int, default=10_000, help="0 measures none")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    index = Index.parse((arguments.pool / "pool.txt").read_bytes())
    decided, learnt = decision_us(480)
    values = {"decision among 480 members, µs": decided, "learning from an inference, µs": learnt}
    values |= memory(arguments.pool, index)
    if arguments.switches:
        values |= switches(arguments.pool, index, arguments.switches)
    table = pd.DataFrame({"model": index.model, "measure": values.keys(), "value": values.values()})
    known = pd.read_csv(arguments.csv) if arguments.csv.exists() else table.iloc[:0]
    whole = pd.concat([known[known.model != index.model], table], ignore_index=True)
    whole.to_csv(arguments.csv, index=False, float_format="%.4g")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
