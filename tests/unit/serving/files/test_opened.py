"""Pools are opened, and damaged ones refused before anything runs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.pools import TinyPool, tiny_pool

from autotailor.serving import PoolError
from autotailor.serving.files import INDEX, open_pool


@pytest.fixture
def tiny(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def test_pieces_are_the_weights_of_the_member(tiny: TinyPool) -> None:
    pool = open_pool(tiny.folder)
    for name, weights in tiny.weights.items():
        member = pool.member(name)
        found = [pool.read(piece) for piece in pool.pieces(member)]
        assert pool.size(member) == sum(array.nbytes for array in found)
        del found[3], found[0]
        for array, expected in zip(found, weights, strict=True):
            np.testing.assert_array_equal(array, expected.reshape(-1))


def test_half_precision_halves_the_file_and_keeps_three_digits(tiny: TinyPool, tmp_path: Path) -> None:
    half, whole = open_pool(tiny_pool(tmp_path / "half", "fp16").folder), open_pool(tiny.folder)
    assert half.index.weights.bytes == whole.index.weights.bytes / 2
    pieces = [pool.pieces(pool.index.members[2]) for pool in (half, whole)]
    for ours, exact in zip(*pieces, strict=True):
        np.testing.assert_allclose(half.read(ours), whole.read(exact), rtol=1e-3)


def test_an_unknown_member_is_named_with_those_that_there_are(tiny: TinyPool) -> None:
    with pytest.raises(PoolError, match=r"no member member_09; members are member_00, member_01"):
        open_pool(tiny.folder).member("member_09")


@pytest.mark.parametrize("file", [INDEX, "weights.bin", "norms.bin"])
def test_a_missing_file_is_named(tiny: TinyPool, file: str) -> None:
    (tiny.folder / file).unlink()
    with pytest.raises(PoolError, match=f"{file}: cannot be read.*copy the folder"):
        open_pool(tiny.folder)


@pytest.mark.parametrize("file", [INDEX, "weights.bin", "norms.bin"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tiny: TinyPool, file: str) -> None:
    (tiny.folder / file).unlink()
    os.mkfifo(tiny.folder / file)
    with pytest.raises(PoolError, match=f"{file}: cannot be read .is a pipe, a device or a folder"):
        open_pool(tiny.folder)


@pytest.mark.parametrize("file", ["weights.bin", "norms.bin"])
def test_a_cut_file_is_refused(tiny: TinyPool, file: str) -> None:
    path = tiny.folder / file
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(PoolError, match=f"{file}: has .* bytes, expected"):
        open_pool(tiny.folder)


@pytest.mark.parametrize("file", ["weights.bin", "norms.bin"])
def test_a_changed_byte_is_refused(tiny: TinyPool, file: str) -> None:
    path = tiny.folder / file
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    with pytest.raises(PoolError, match=f"{file}: its content has SHA-256"):
        open_pool(tiny.folder)


@pytest.mark.parametrize("kind", ["param", "slices"])
def test_a_changed_file_of_a_member_is_refused_when_it_is_read(tiny: TinyPool, kind: str) -> None:
    path = tiny.folder / "members" / f"member_01.{kind}"
    path.write_text(path.read_text() + "\n")
    pool = open_pool(tiny.folder)
    read = {"param": pool.param, "slices": pool.pieces}[kind]
    read(pool.member("member_00"))
    with pytest.raises(PoolError, match=rf"member_01.{kind}: its content has SHA-256"):
        read(pool.member("member_01"))


def test_reading_a_pool_imports_neither_torch_nor_the_rule() -> None:
    code = (
        "import sys, autotailor.serving.files as files; "
        "print([name for name in sys.modules if name.split('.')[0] in ('torch', 'onnx', 'ncnn')"
        " or name.startswith('autotailor.pool')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
