"""Measures what makes a training step of the embedded default faster: threads, and keeping freed memory.

    python benchmarks/training.py [--steps 15] [--csv training.csv]

Every variant trains in processes of its own, because neither setting can be undone within a process. The processes of
the variants take turns. Seconds are medians over all steps; the ratio is to the first variant.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

VARIANTS = {
    "1 thread": (1, False),
    "1 thread, memory kept": (1, True),
    "2 threads, memory kept": (2, True),
}
"""Name of each variant to the number of PyTorch's threads, and whether ``keep_freed_memory`` is called."""
ROUNDS = 3
BATCH = 64


def train(threads: int, keep: bool, steps: int) -> list[float]:
    """Seconds of each step."""
    import time

    import torch

    from autotailor.accuracy.allocator import keep_freed_memory
    from autotailor.zoo.resnet_digits import resnet_digits

    torch.set_num_threads(threads)
    if keep:
        keep_freed_memory()
    network = resnet_digits().to(memory_format=torch.channels_last).train()
    images = torch.randn(BATCH, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (BATCH,))
    seconds = []
    for _ in range(steps + 3):
        start = time.perf_counter()
        network.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        seconds.append(time.perf_counter() - start)
    return seconds[3:]


def measure(steps: int) -> pd.DataFrame:
    """One row for each variant: name, seconds, ratio."""
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(ROUNDS):
        for name, (threads, keep) in VARIANTS.items():
            command = [sys.executable, __file__, "--variant", json.dumps([threads, keep, steps])]
            environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            seconds[name] += json.loads(done.stdout)
    table = pd.DataFrame({"variant": list(seconds), "seconds": [pd.Series(s).median() for s in seconds.values()]})
    return table.assign(ratio=table.seconds / table.seconds[0])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.variant:
        print(json.dumps(train(*json.loads(arguments.variant))))
        return
    result = measure(arguments.steps)
    table = Table("variant", "seconds", "ratio")
    for row in result.itertuples():
        table.add_row(str(row.variant), f"{row.seconds:.3f}", f"{row.ratio:.2f}")
    Console().print(table)
    if arguments.csv:
        result.to_csv(arguments.csv, index=False)


if __name__ == "__main__":
    main()
