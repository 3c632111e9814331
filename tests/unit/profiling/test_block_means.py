"""What the runners say of many runs: the Python one as it should be, the compiled one as the Python one."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from autotailor.profiling.runtimes import runner_loop
from device.emulation import needed

RUNNER = Path(__file__).parents[3] / "src" / "runner"
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


def test_blocks_are_means_of_what_was_not_interrupted() -> None:
    rng = np.random.default_rng(0)
    slow = np.repeat(rng.random(50) < 0.4, 4)  # others use the core at times
    first, second = np.where(slow, 150, 100), np.where(slow, 260, 200)
    blocks = [runner_loop.block_means(times.tolist(), 8) for times in (first, second, first + second)]
    np.testing.assert_allclose(np.add(blocks[0], blocks[1]), blocks[2], rtol=1e-12)
    interrupted = first.copy()
    interrupted[[17, 90, 91]] = 10_000
    assert np.mean(runner_loop.block_means(interrupted.tolist(), 8)) == pytest.approx(np.mean(blocks[0]), rel=0.02)


@pytest.mark.parametrize(
    ("times", "means"),
    [
        ([5], [5.0]),
        ([4, 8], [6.0]),
        ([4, 90, 8], [6.0]),
        ([4, 8, 90, 6], [6.0, 6.0]),
        ([4, 4, 90, 6, 2], [4.0, 4.0]),
        ([7] * 40, [7.0] * 8),
    ],
)
def test_no_block_is_empty(times: list[int], means: list[float]) -> None:
    assert runner_loop.block_means(times, 8) == means


def test_the_compiled_runner_says_the_same(tmp_path: Path) -> None:
    source, program = tmp_path / "asked.cpp", tmp_path / "asked"
    source.write_text(ASKED)
    compiler = needed("g++", "g++")
    subprocess.run([compiler, "-std=c++17", "-I", str(RUNNER), "-o", str(program), str(source)], check=True)
    rng = np.random.default_rng(0)
    asked = [
        (int(rng.integers(1, 10)), rng.integers(1, 50 if few else 10**9, rng.integers(1, 200)).tolist())
        for few in rng.random(300) < 0.5  # few: the same time often
    ]
    lines = "".join(f"{blocks} {' '.join(map(str, times))}\n" for blocks, times in asked)
    said = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(asked)
    for line, (blocks, times) in zip(said, asked, strict=True):
        np.testing.assert_allclose([float(word) for word in line.split()], runner_loop.block_means(times, blocks))
