"""Pieces of a ``.bin``, as ncnn reads them."""

from pathlib import Path

import numpy as np
import pytest

from autotailor.pool.recording import record_pieces
from autotailor.serving import PoolError

PARAM = """7767517
4 4
Input in0 0 1 in0
BatchNorm norm 1 1 in0 1 0=3 1=1e-5
Convolution conv 1 1 1 2 0=2 1=1 5=1 6=6
InnerProduct fc 1 1 2 out0 0=1 1=1 2=2
"""


def write(folder: Path, numbers: int) -> tuple[Path, Path]:
    param, weights = folder / "m.param", folder / "m.bin"
    param.write_text(PARAM)
    values = np.arange(1, numbers + 1, dtype="<f4")
    values[[12, 21]] = 0  # the tags before the two weights
    values.tofile(weights)
    return param, weights


def test_pieces_and_tags_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    pieces = record_pieces(*write(tmp_path, 25))
    assert [len(piece.values) for piece in pieces] == [3, 3, 3, 3, 0, 6, 2, 0, 2, 1]
    assert [piece.tagged for piece in pieces] == [False] * 5 + [True, False, False, True, False]
    np.testing.assert_array_equal(pieces[5].values, np.arange(14, 20))
    assert pieces[-1].values[0] == 25


@pytest.mark.parametrize("numbers", [24, 26])
def test_a_file_that_is_too_short_or_too_long_is_refused(tmp_path: Path, numbers: int) -> None:
    with pytest.raises(PoolError, match=r"m\.param: ncnn cannot load it with m\.bin; convert the network again"):
        record_pieces(*write(tmp_path, numbers))
