"""scikit-learn's table of handwritten digits, read from its file: importing scikit-learn takes longer than a second."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError


def content() -> bytes:
    """The table as text, uncompressed.

    Raises:
        DataError: scikit-learn is not installed.
    """
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise DataError(
            "data digits: scikit-learn, which ships the images, is not installed; install it with "
            "`pip install scikit-learn`"
        )
    table = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    return gzip.decompress(table.read_bytes())


def digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """All images ``[n, 8, 8]`` with values 0 to 16, and their labels."""
    table = np.array([line.split(",") for line in content().decode("ascii").split()], dtype=np.float64)
    return table[:, :-1].reshape(-1, 8, 8).astype(np.float32), table[:, -1].astype(np.int64)
