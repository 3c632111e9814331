"""The compiled runner says the same of many runs as the Python runner."""

import subprocess
from pathlib import Path

import numpy as np

from autotailor.profiling.runtimes.runner import loop as runner_loop
from compiled import compiled

ASKED = """
#include <cstdio>
#include <iostream>
#include <sstream>
#include "blocks.h"
int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        int blocks;
        words >> blocks;
        std::vector<int64_t> times;
        for (int64_t time; words >> time;) times.push_back(time);
        for (double mean : block_means(times, blocks)) std::printf("%.17g ", mean);
        std::printf("\\n");
    }
}
"""


def test_the_compiled_runner_says_the_same(tmp_path: Path) -> None:
    program = compiled(tmp_path, ASKED)
    rng = np.random.default_rng(0)
    asked = [
        (int(rng.integers(1, 20)), rng.integers(1, 50 if few else 10**9, rng.integers(1, 200)).tolist())
        for few in rng.random(300) < 0.5  # few: the same time often
    ]
    lines = "".join(f"{blocks} {' '.join(map(str, times))}\n" for blocks, times in asked)
    said = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(asked)
    for line, (blocks, times) in zip(said, asked, strict=True):
        np.testing.assert_allclose([float(word) for word in line.split()], runner_loop.block_means(times, blocks))
