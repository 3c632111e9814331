"""Lines of ``NAME.slices``, and what they take, against NumPy's own indexing."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.serving import PoolError
from autotailor.serving.files import Norms, Slice, Tag, parse_pieces, pieces_text
from autotailor.serving.files.pieces import Ranges

NONE = np.empty(0, np.float32)


@st.composite
def ranges(draw: st.DrawFn, size: int) -> Ranges:
    starts = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=4))
    return tuple((start, draw(st.integers(start + 1, size))) for start in starts)


@st.composite
def slices(draw: st.DrawFn) -> Slice:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    take = tuple(draw(ranges(size)) for size in shape)
    scaled = draw(st.integers(0, len(shape)))
    return Slice(draw(st.integers(0, 3)) * 64, shape, take, draw(st.integers(0, 3)) * 4 if scaled else None, scaled)


@given(slices(), st.sampled_from(["<f4", "<f2"]))
def test_a_slice_takes_what_indexing_takes(piece: Slice, kind: str) -> None:
    rng = np.random.default_rng(0)
    stored = rng.normal(size=4 * 64 + 6**4).astype(kind)
    norms = rng.normal(size=3 + 12**4 * 2).astype(np.float32) if piece.scaled else NONE
    first = piece.offset // stored.itemsize
    tensor = stored[first : first + int(np.prod(piece.shape))].reshape(piece.shape)
    indices = [np.concatenate([np.arange(*pair) for pair in each]) for each in piece.take]
    expected = tensor[np.ix_(*indices)].astype(np.float32)
    if piece.scale is not None and expected[..., 0].size <= len(norms):
        count = int(np.prod(expected.shape[: piece.scaled]))
        if count > len(norms) - piece.scale // 4:
            return
        factors = norms[piece.scale // 4 :][:count].reshape(expected.shape[: piece.scaled])
        expected = expected * factors[(...,) + (None,) * (expected.ndim - piece.scaled)]
    np.testing.assert_array_equal(piece.read(stored, norms), expected.reshape(-1))


@given(st.lists(st.one_of(slices(), st.builds(Tag, st.integers(0, 9)), st.just(Norms(64, 3))), max_size=5))
def test_what_was_written_is_read(pieces: list[Slice | Tag | Norms]) -> None:
    assert parse_pieces(pieces_text(pieces), "m.slices") == tuple(pieces)


def test_the_docstrings_example() -> None:
    text = "tag 0\nslice 4096 64x32x3x3 0:48x0:16,24:32x0:3x0:3 512 1\nnorms 704 48\n"
    take = (((0, 48),), ((0, 16), (24, 32)), ((0, 3),), ((0, 3),))
    pieces = (Tag(0), Slice(4096, (64, 32, 3, 3), take, 512, 1), Norms(704, 48))
    assert parse_pieces(text, "m.slices") == pieces
    assert pieces[1].taken == (48, 24, 3, 3)


@pytest.mark.parametrize(
    "line",
    [
        "", "tag", "tag -1", "norms 64", "norms 64 x", "piece 1 2", "slice 0 4 0:5 - 0", "slice 0 4 2:2 - 0",
        "slice 0 4 3:2 - 0", "slice 0 4x4 0:4 - 0", "slice 0 4 0:4 - 1", "slice 0 4 0:4 64 0", "slice 0 4 0:4 64 2",
        "slice 0 4 0:4 - 0 ", "slice 0 ４ 0:4 - 0",
    ],
)  # fmt: skip
def test_a_line_that_is_no_piece_is_named(line: str) -> None:
    with pytest.raises(PoolError, match=re.escape("m.slices, line 2: ")):
        parse_pieces(f"tag 0\n{line}\n", "m.slices")


@pytest.mark.parametrize("piece", [Norms(64, 1), Norms(2, 1), Slice(0, (4, 5), (((0, 1),), ((0, 1),)))])
def test_a_piece_outside_of_its_file_is_refused(piece: Norms | Slice) -> None:
    with pytest.raises(PoolError, match="a member reads"):
        piece.read(np.zeros(16, np.float32), np.zeros(16, np.float32))
