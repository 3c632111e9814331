"""The compiled runner runs the programs of a batch in another order in each pass."""

import subprocess
from collections import Counter
from pathlib import Path

from compiled import compiled

ASKED = """
#include <cstdio>
#include "turns.h"
int main() {
    Turns turns(5);
    for (int pass = 0; pass < 1000; ++pass) {
        for (size_t number : turns.next()) std::printf("%zu ", number);
        std::printf("\\n");
    }
}
"""


def test_each_program_runs_once_in_a_pass_and_at_each_place_alike_often(tmp_path: Path) -> None:
    said = subprocess.run([compiled(tmp_path, ASKED)], capture_output=True, text=True, check=True).stdout
    passes = [line.split() for line in said.splitlines()]
    assert len(passes) == 1000
    assert all(sorted(numbers) == list("01234") for numbers in passes)
    for place in zip(*passes, strict=True):
        assert min(Counter(place).values()) > 0.7 * max(Counter(place).values())
        assert set(place) == set("01234")
