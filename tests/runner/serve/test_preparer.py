"""The thread that materialises members, with networks that cost nothing."""

import shutil
import subprocess
from pathlib import Path

from compiled import HEADERS, compiled

NETWORK = """
#pragma once
#include <string>
#include <vector>
struct Member { std::string name; };
struct Pool { std::vector<Member> members; };
struct Loaded { Loaded(const Pool&, size_t) {} };
"""
PROGRAM = """
#include <chrono>
#include <cstdio>
#include "preparer.h"

int main() {
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
    Pool pool{{{"small"}, {"large"}}};
    Preparer preparer(pool);
    for (const size_t wanted : {0, 1, 0}) {
        preparer.want(wanted);
        pause();
    }
    Preparer::Done done;
    while (preparer.take(done)) std::printf("%zu ", done.number);
    preparer.want(0);
    pause();
    while (preparer.take(done)) std::printf("%zu", done.number);
}
"""


def test_a_member_that_waits_to_be_taken_is_not_prepared_again(tmp_path: Path) -> None:
    """A second network of it would take the place of the one that runs."""
    shutil.copy(HEADERS / "engine" / "preparer.h", tmp_path)
    (tmp_path / "loaded.h").write_text(NETWORK)
    program = compiled(tmp_path, PROGRAM, "-I", str(HEADERS / "engine"), "-pthread")
    assert subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout == "1 0 0"
