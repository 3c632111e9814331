"""One cluster for all tests of a file; without Slurm's programs the tests are skipped, and say what mends that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import pipeline, slurm
from cluster.pipeline import RESULTS
from cluster.slurm import Slurm


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    if lacking := slurm.missing():
        pytest.skip(f"Slurm's {', '.join(lacking)} missing: {slurm.INSTALL}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, slurm.running(Path(folder)) as running:
        yield running


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which this machine has computed what does not depend on measured latencies."""
    folder = tmp_path_factory.mktemp("local")
    wanted = [str(RESULTS / name) for name in ("accuracy_validation.csv", f"{pipeline.DEVICE}/operators.csv")]
    pipeline.run(folder, pipeline.HERE, *wanted)
    return folder
