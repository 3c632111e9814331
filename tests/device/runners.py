"""The compiled runner for tests. It takes minutes to build, so the suite does not build it: ``make runner`` does."""

import os
from pathlib import Path

import pytest

from autotailor.profiling.runtimes.runner.binary import FOLDER, NAME, VARIABLES


def built(target: str) -> Path:
    """The binary of a target, ``host`` or ``aarch64``; the test is skipped where it is not built."""
    binary = Path(os.environ.get(VARIABLES[target], FOLDER / target / NAME))
    if not binary.exists():
        pytest.skip(f"{binary} is not built: make runner")
    return binary
