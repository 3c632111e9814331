"""What the runners say of many runs: the Python one as it should be, the compiled one as the Python one."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from autotailor.profiling.runtimes.runner import loop as runner_loop
from device.emulation import needed

RUNNER = Path(__file__).parents[5] / "src" / "runner"
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


def test_blocks_of_operators_add_up_to_those_of_their_network() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.where(rng.random(800) < 0.45, 150, 100) for _ in range(2))  # others use the core at times
    network = first + second

    def missed(statistic: Callable[[Sequence[float]], float]) -> float:
        return abs((statistic(first) + statistic(second)) / statistic(network) - 1)

    assert missed(lambda times: float(np.mean(runner_loop.block_means(times, 8)))) < 0.02
    assert missed(lambda times: float(np.median(times))) > 0.15


def test_interruptions_do_not_count() -> None:
    times = np.full(200, 100)
    times[[17, 90, 91]] = 10_000
    np.testing.assert_allclose(runner_loop.block_means(times.tolist(), 8), 100, rtol=1e-5)


@pytest.mark.parametrize("count", [4, 9, 19, 20, 39, 40, 100])
def test_the_same_share_is_left_out_of_few_runs_and_many(count: int) -> None:
    left_out = 0.05 * count
    slow = max(0.0, 1.0 - left_out)  # what is left of the slow run
    expected = (300 * slow + 100 * (count - left_out - slow)) / (count - left_out)
    times = [100.0] * count
    times[count // 2] = 300.0
    assert runner_loop.block_means(times, 1) == pytest.approx([expected])


@pytest.mark.parametrize(
    ("times", "blocks", "means"),
    [
        ([5], 8, [5.0]),
        ([4, 8], 8, [4.0, 8.0]),
        ([7] * 40, 8, [7.0] * 8),
        ([1] * 38 + [9, 9], 20, [1.0] * 19 + [9.0]),
    ],
)
def test_no_block_is_empty(times: list[int], blocks: int, means: list[float]) -> None:
    assert runner_loop.block_means(times, blocks) == pytest.approx(means)


def test_the_compiled_runner_says_the_same(tmp_path: Path) -> None:
    source, program = tmp_path / "asked.cpp", tmp_path / "asked"
    source.write_text(ASKED)
    compiler = needed("g++", "g++")
    subprocess.run([compiler, "-std=c++17", "-I", str(RUNNER), "-o", str(program), str(source)], check=True)
    rng = np.random.default_rng(0)
    asked = [
        (int(rng.integers(1, 20)), rng.integers(1, 50 if few else 10**9, rng.integers(1, 200)).tolist())
        for few in rng.random(300) < 0.5  # few: the same time often
    ]
    lines = "".join(f"{blocks} {' '.join(map(str, times))}\n" for blocks, times in asked)
    said = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(asked)
    for line, (blocks, times) in zip(said, asked, strict=True):
        np.testing.assert_allclose([float(word) for word in line.split()], runner_loop.block_means(times, blocks))
