"""One cluster for all tests of a file; without Slurm's programs the tests are skipped, and say what mends that."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import pipeline, slurm
from cluster.pipeline import RESULTS
from cluster.slurm import Slurm


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder whose path is short, because paths of sockets are limited; skips where Slurm is missing."""
    if lacking := slurm.missing():
        pytest.skip(f"Slurm's {', '.join(lacking)} missing: {slurm.INSTALL}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        yield Path(folder)


@pytest.fixture
def short() -> Iterator[Path]:
    with empty_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    with empty_folder() as folder, slurm.running(folder) as running:
        yield running


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which this machine has computed what does not depend on measured latencies."""
    folder = tmp_path_factory.mktemp("local")
    wanted = [str(RESULTS / name) for name in ("accuracy_validation.csv", f"{pipeline.DEVICE}/operators.csv")]
    pipeline.run(folder, pipeline.HERE, *wanted)
    return folder
