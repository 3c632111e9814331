"""Pools on disk as the server reads them: gathered weights against NumPy, damaged and foreign pools."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.artifacts import file_digest
from autotailor.serving.files import Index
from pools import TinyPool, tiny_pool
from served import Serving, refusal


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def reseal(folder: Path, change: Callable[[Index], Index] = lambda index: index) -> None:
    """Writes ``pool.txt`` anew with the hashes of the files as they are."""
    index = change(Index.parse((folder / "pool.txt").read_bytes()))
    members = tuple(
        replace(
            member,
            param=file_digest(folder / "members" / f"{member.name}.param"),
            slices=file_digest(folder / "members" / f"{member.name}.slices"),
        )
        for member in index.members
    )
    files = {
        name: replace(getattr(index, name), bytes=path.stat().st_size, sha256=file_digest(path))
        for name, path in (("weights", folder / "weights.bin"), ("norms", folder / "norms.bin"))
    }
    (folder / "pool.txt").write_text(replace(index, members=members, **files).text())


def test_a_whole_pool_passes_its_check(command: tuple[str, ...], pool: TinyPool) -> None:
    done = subprocess.run([*command, "--check", str(pool.folder)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"member_{number:02} is whole" for number in range(3)]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("seed", range(6))
def test_gathered_slices_equal_numpys(command: tuple[str, ...], pool: TinyPool, precision: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = np.dtype("<f2" if precision == "fp16" else "<f4")
    weights, norms, lines, expected = b"", b"", [], b""
    for _ in range(12):
        dims = int(rng.integers(1, 5))
        shape = tuple(int(each) for each in rng.integers(1, 7, dims))
        tensor = rng.normal(0, 1, shape).astype(kind)
        if precision == "fp16":
            tensor.flat[0] = rng.choice([6e-8, 65504, -0.0, 1e-5])  # subnormal, largest, signed zero
        weights += bytes(-len(weights) % 64)
        takes, picked = [], []
        for size in shape:
            is_whole = rng.random() < 0.4
            ends = [(0, size)] if is_whole else random_ranges(rng, size)
            takes.append(",".join(f"{begin}:{end}" for begin, end in ends))
            picked.append([i for begin, end in ends for i in range(begin, end)])
        taken = tensor[np.ix_(*picked)].astype(np.float32)
        scaled = int(rng.integers(0, dims + 1))
        where = "-"
        if scaled:
            norms += bytes(-len(norms) % 64)
            scale = rng.uniform(0.5, 2, taken.shape[:scaled]).astype(np.float32)
            where = str(len(norms))
            norms += scale.tobytes()
            taken = taken * scale.reshape(*scale.shape, *[1] * (dims - scaled))
        lines.append(f"slice {len(weights)} {'x'.join(map(str, shape))} {'x'.join(takes)} {where} {scaled}")
        weights += tensor.tobytes()
        expected += taken.tobytes()
        tag, count = int(rng.integers(1 << 32)), int(rng.integers(1, 9))
        lines += [f"tag {tag}", f"norms {len(norms)} {count}"]
        vector = rng.normal(0, 1, count).astype("<f4").tobytes()
        norms += vector
        expected += tag.to_bytes(4, "little") + vector
    (pool.folder / "weights.bin").write_bytes(weights)
    (pool.folder / "norms.bin").write_bytes(norms)
    for path in (pool.folder / "members").glob("*.slices"):
        path.write_text("".join(f"{line}\n" for line in lines))
    reseal(pool.folder, lambda index: replace(index, precision=precision))
    words = [*command, "--gather", "member_00", str(pool.folder)]
    assert subprocess.run(words, capture_output=True, check=True).stdout == expected


def random_ranges(rng: np.random.Generator, size: int) -> list[tuple[int, int]]:
    """One to three ranges, which may overlap and stand in any order."""
    begins = [int(rng.integers(size)) for _ in range(int(rng.integers(1, 4)))]
    return [(begin, int(rng.integers(begin, size)) + 1) for begin in begins]


@pytest.mark.parametrize(
    "name", ["pool.txt", "weights.bin", "norms.bin", "members/member_01.param", "members/member_01.slices"]
)
@pytest.mark.parametrize("damage", ["missing", "truncated", "changed", "empty", "folder"])
def test_a_damaged_file_is_named(command: tuple[str, ...], pool: TinyPool, name: str, damage: str) -> None:
    path = pool.folder / name
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    else:
        path.unlink()
        if damage == "folder":
            path.mkdir()
        elif damage == "empty":
            path.touch()
    said = refusal(command, str(pool.folder))
    assert str(path) in said
    assert "copy the whole pool" in said


def test_the_files_of_another_pool_are_refused(command: tuple[str, ...], pool: TinyPool, tmp_path: Path) -> None:
    other = tiny_pool(tmp_path / "other", seed=9)
    shutil.copy(other.folder / "weights.bin", pool.folder / "weights.bin")
    assert "SHA-256 differs" in refusal(command, str(pool.folder))


def test_no_pool_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    assert "nothing" in refusal(command, str(tmp_path / "nothing"))
    (tmp_path / "pool.txt").write_text("hello\n")
    assert "is no pool" in refusal(command, str(tmp_path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("slice 0 8x3x3x3 0:9x0:3x0:3x0:3 - 0", "end of a range is 9"),
        ("slice 0 8x3x3x3 4:4x0:3x0:3x0:3 - 0", "4:4 is empty"),
        ("slice 0 8x3x3x3 0:8x0:3x0:3 - 0", "ranges for each dimension"),
        ("slice 0 800x3x3x3 0:8x0:3x0:3x0:3 - 0", "outside of weights.bin"),
        ("slice 18446744073709551615 8 0:8 - 0", "offset is 18446744073709551615"),
        ("slice 0 4294967296x4294967296 0:1x0:1 - 0", "too large"),
        ("slice 2 8 0:8 - 0", "no multiple of 4"),
        ("slice 0 8x3 0:8x0:3 99999999 1", "offset of scales is 99999999"),
        ("slice 0 8x3 0:8x0:3 0 3", "scaled dimensions is 3"),
        ("slice 0 8x3 0:8x0:3 - 1", "scales need"),
        ("slice 0 8x3 0:8x0:3 0 1 x", "end of the line"),
        ("slice 0 8x3 0-8x0:3 - 0", "BEGIN:END"),
        ("norms 0 100000", "outside of norms.bin"),
        ("norms 0 0", "empty"),
        ("norms -4 1", "offset is -4"),
        ("tag 4294967296", "tag is 4294967296"),
        ("tag", "at the end of the line"),
        ("jump 0 1", "not jump"),
    ],
)
def test_slices_outside_of_the_files_are_refused(
    command: tuple[str, ...], pool: TinyPool, line: str, message: str
) -> None:
    path = pool.folder / "members" / "member_02.slices"
    path.write_text(f"{path.read_text()}{line}\n")
    reseal(pool.folder)
    said = refusal(command, "--check", str(pool.folder))
    assert re.search(rf"member_02\.slices, line 7: .*{re.escape(message)}", said), said


def test_slices_that_do_not_match_the_layers_are_refused(command: tuple[str, ...], pool: TinyPool) -> None:
    path = pool.folder / "members" / "member_00.slices"
    whole = path.read_text()
    path.write_text(whole + "norms 0 1\n")
    reseal(pool.folder)
    assert "member_00: its .slices hold more than its layers read" in refusal(command, str(pool.folder))
    path.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    reseal(pool.folder)
    assert "member_00: ncnn cannot load its weights" in refusal(command, str(pool.folder))


@pytest.mark.parametrize("values", [{"accuracy": -3.5}, {"energy_mj": -0.02}], ids=str)
def test_a_predicted_accuracy_or_a_measured_energy_may_be_below_zero(
    command: tuple[str, ...], pool: TinyPool, values: dict[str, float]
) -> None:
    """The rule writes such a pool."""
    reseal(pool.folder, lambda index: replace(index, members=(replace(index.members[0], **values), *index.members[1:])))
    done = subprocess.run([*command, "--check", str(pool.folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("autotailor-pool 1", "autotailor-pool 2"), "expected the first line"),
        (("fp32", "fp64"), "fp32 or fp16"),
        (("member member_00", "member ../../etc"), "no letter, digit"),
        (("3x8x8", "3x8"), "three sizes"),
        (("3x8x8", "0x8x8"), "empty or too large"),
        (("accuracy 90.0", "accuracy nan"), "accuracy is nan"),
        (("compute_ms 0.01", "compute_ms 5.0"), "the sum"),
        (("member member_01", "member member_00"), "two members are called member_00"),
        (("use_fp16_packed=0", "use_fp16_packed=2"), "NAME=0 or NAME=1"),
    ],
)
def test_a_sealed_index_is_checked_value_by_value(
    command: tuple[str, ...], pool: TinyPool, change: tuple[str, str], message: str
) -> None:
    import hashlib

    path = pool.folder / "pool.txt"
    text = "".join(path.read_text().splitlines(keepends=True)[:-1])
    assert change[0] in text
    text = text.replace(*change, 1)
    if "member_00" in change[1]:
        shutil.copy(pool.folder / "members/member_01.param", pool.folder / "members/member_00.param")
        shutil.copy(pool.folder / "members/member_01.slices", pool.folder / "members/member_00.slices")
        text = re.sub(r"^(member member_00 accuracy 90.*\n)", "", text, count=1, flags=re.MULTILINE)
        text += next(line for line in text.splitlines(keepends=True) if line.startswith("member member_00"))
    path.write_text(f"{text}end {hashlib.sha256(text.encode()).hexdigest()}\n")
    assert message in refusal(command, str(pool.folder))


def test_lines_that_not_every_pool_has_are_read_in_any_choice(command: tuple[str, ...], pool: TinyPool) -> None:
    for cores in ((), (0,)):
        for task in ("", "regression"):
            reseal(pool.folder, lambda index, c=cores, t=task: replace(index, cores=c, task=t))  # type: ignore[misc]
            with Serving(command, pool.folder, "--cores", "any") as server, server.client() as client:
                assert client.status().get("task", "") == task
    path = pool.folder / "pool.txt"
    reseal(pool.folder, lambda index: replace(index, cores=(0,), task="regression"))
    body = path.read_bytes()[: path.read_bytes().rindex(b"end ")].replace(b"norms ", b"norm ", 1)
    path.write_bytes(body + b"end " + hashlib.sha256(body).hexdigest().encode() + b"\n")
    assert "pool.txt, line 8: " in refusal(command, str(pool.folder))
