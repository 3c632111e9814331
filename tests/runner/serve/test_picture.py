"""Pictures at another size equal those that the data are loaded with."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from compiled import compiled

ASKED = r"""
#include <cstdio>
#include "engine/picture.h"
int main() {
    int sizes[5];
    while (std::fread(sizes, sizeof(int), 5, stdin) == 5) {
        const Size from = {sizes[0], sizes[1], sizes[2]}, to = {sizes[0], sizes[3], sizes[4]};
        std::vector<float> picture(from.count()), out(to.count());
        if (std::fread(picture.data(), 4, picture.size(), stdin) != picture.size()) return 1;
        Resizer resizer(from, to);
        resizer.resize(picture.data(), out.data());
        resizer.resize(picture.data(), out.data());
        std::fwrite(out.data(), 4, out.size(), stdout);
    }
}
"""
SIZES = [
    (3, 32, 32, 24, 24),
    (1, 8, 8, 12, 12),
    (3, 17, 31, 5, 64),
    (2, 224, 224, 96, 128),
    (1, 1, 1, 3, 3),
    (3, 7, 7, 1, 1),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("picture"), ASKED)


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
def test_it_equals_torchs_antialiased_bilinear(program: Path, sizes: tuple[int, ...]) -> None:
    channels, height, width, *to = sizes
    picture = np.random.default_rng(0).normal(size=(channels, height, width)).astype(np.float32)
    content = np.array(sizes, dtype="<i4").tobytes() + picture.tobytes()
    said = subprocess.run([str(program)], input=content, capture_output=True, check=True).stdout
    found = np.frombuffer(said, "<f4").reshape(channels, *to)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(picture)[None], tuple(to), mode="bilinear", antialias=True, align_corners=False
    )
    np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-5)


COUNTED = r"""
#include <cstdio>
#include "engine/picture.h"
int main() {
    std::vector<float> numbers(1024);
    const size_t count = std::fread(numbers.data(), sizeof(float), numbers.size(), stdin);
    std::printf("%zu", not_finite(numbers.data(), count));
}
"""


def test_nan_and_both_infinities_are_no_numbers(tmp_path: Path) -> None:
    limits = np.finfo(np.float32)
    numbers = np.array([0.0, -0.0, 1.5, limits.max, limits.min, limits.tiny / 2], np.float32)
    spoilt = np.array([np.nan, -np.nan, np.inf, -np.inf], np.float32)
    program = compiled(tmp_path, COUNTED)

    def count(content: np.ndarray) -> int:
        return int(subprocess.run([str(program)], input=content.tobytes(), capture_output=True, check=True).stdout)

    assert count(numbers) == 0
    assert count(np.concatenate([spoilt, numbers, spoilt])) == 8
