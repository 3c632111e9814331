"""``pool.txt``, written, read, and damaged."""

import hashlib
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pools import early_pool, tiny_pool

from autotailor.serving import PoolError
from autotailor.serving.files import INDEX, Index
from autotailor.serving.files.exits import Confidence


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    tiny_pool(tmp_path / "pool")
    return (tmp_path / "pool" / INDEX).read_bytes()


def test_what_was_written_is_read(content: bytes) -> None:
    index = Index.parse(content)
    assert [member.name for member in index.members] == ["member_00", "member_01", "member_02"]
    assert index.members[1].split_ms == (0.02, 0.01, 0.005)
    assert index.members[1].latency_ms == pytest.approx(0.035)
    assert index.options == (("use_fp16_arithmetic", False), ("use_fp16_packed", False), ("use_fp16_storage", False))
    assert index.text().encode() == content


def test_a_task_that_is_no_classification_is_said(content: bytes) -> None:
    assert b"task" not in content
    for changed in ({"task": "regression"}, {"task": "embedding", "cores": (0, 2)}):
        index = replace(Index.parse(content), **changed)  # type: ignore[arg-type]
        assert Index.parse(index.text().encode()) == index


def test_unknown_energy_stays_unknown(content: bytes) -> None:
    index = Index.parse(content)
    unknown = replace(index, members=(replace(index.members[0], energy_mj=math.nan),))
    assert math.isnan(Index.parse(unknown.text().encode()).members[0].energy_mj)


@pytest.mark.parametrize("cut", [1, 2, 30, 100, 400])
def test_a_cut_file_is_refused(content: bytes, cut: int) -> None:
    with pytest.raises(PoolError, match="is cut or changed"):
        Index.parse(content[:-cut])


def test_a_changed_digit_is_refused(content: bytes) -> None:
    with pytest.raises(PoolError, match="is cut or changed"):
        Index.parse(content.replace(b"accuracy 91.0", b"accuracy 99.0"))


def test_another_version_is_refused() -> None:
    with pytest.raises(PoolError, match="another version"):
        Index.parse(b"autotailor-pool 2\nend 0\n")


@pytest.mark.parametrize("begin", [b"", b"autotail", b"\x00\xff", b"7767517\n4 4\n"])
def test_an_empty_or_foreign_file_is_not_taken_for_another_version(begin: bytes) -> None:
    with pytest.raises(PoolError, match="it is cut, or no pool's"):
        Index.parse(begin)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weights fp32", "weights fp8", "precision fp8"),
        ("latency_ms 0.02 ", "latency_ms 0.5 ", "is not the sum"),
        ("accuracy 90.0", "accuracy nan", "no finite number"),
        ("member_01", "member_00", "two members have the same name"),
        ("member_01", "../outside", "'../outside' is no name"),
        ("3x8x8", "3x8", "no line of a member"),
        ("3x8x8", "0x8x8", "no whole number from 1"),
        ("output out0 4", "output out0 5", "different numbers of classes"),
        ("use_fp16_packed=0", "use_fp16_packed=yes", "no option"),
        ("device host\n", "", "no line 'device'"),
        ("peak_bytes 10000", "peak_bytes -1", "no whole number"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(content: bytes, old: str, new: str, said: str) -> None:
    """The hash fits, as that of a file that another program wrote."""
    body = content.decode().rpartition("end ")[0]
    assert old in body
    body = body.replace(old, new, 1)
    with pytest.raises(PoolError, match=re.escape(said)):
        Index.parse(f"{body}end {hashlib.sha256(body.encode()).hexdigest()}\n".encode())


def test_a_pool_without_members_is_refused(content: bytes) -> None:
    with pytest.raises(PoolError, match="there is no member"):
        Index.parse(replace(Index.parse(content), members=()).text().encode())


def test_the_cores_of_the_measurements_are_read_where_there_are_some(content: bytes) -> None:
    index = Index.parse(content)
    assert index.cores == ()
    assert b"cores" not in content
    pinned = replace(index, cores=(0, 3))
    assert "\ncores 0 3\n" in pinned.text()
    assert Index.parse(pinned.text().encode()) == pinned
    for cores in ("cores x", "cores -1"):
        body = pinned.text().replace("cores 0 3", cores).encode()
        body = body[: body.rindex(b"end ")]
        with pytest.raises(PoolError, match="is no whole number from 0"):
            Index.parse(body + f"end {hashlib.sha256(body).hexdigest()}\n".encode())


def test_exits_that_were_written_are_read(tmp_path: Path) -> None:
    content = (early_pool(tmp_path / "pool").folder / INDEX).read_bytes()
    index = Index.parse(content)
    (member,) = index.members
    assert [(each.name, each.output, each.latency_ms) for each in member.exits] == [
        ("stage1", "out0", 0.2),
        ("stage2", "out1", 0.4),
    ]
    assert dict(member.thresholds) == {"guaranteed": (0.0, None), "60%": (None, 0.0), "late": (1.5, 1.5)}
    assert index.confidence == Confidence("probability", "logits")
    assert index.text().encode() == content


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("confidence probability logits\n", "", "without a line confidence"),
        ("confidence probability", "confidence entropy", "confidence of entropy"),
        ("exit stage2", "exit stage1", "two exits of a member"),
        ("exit stage2", "exit last", "two exits of a member"),
        ("output out1\nthr", "output out2\nthr", "two blobs of a member"),
        ("latency_ms 0.4 output out1", "latency_ms 0.1 output out1", "not positive and rising"),
        ("latency_ms 0.4 output out1", "latency_ms 4 output out1", "not positive and rising"),
        ("guaranteed 0.0 -", "guaranteed 0.0", "no line of thresholds of 2 exits"),
        ("guaranteed 0.0 -", "guaranteed nan -", "no finite number"),
        ("guaranteed 0.0 -", "guaranteed -1.0 -", "a threshold below 0"),
        ("thresholds 60%", "thresholds guaranteed", "two thresholds of a member"),
    ],
)
def test_exits_that_make_no_sense_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (early_pool(tmp_path / "pool").folder / INDEX).read_text()
    assert old in text
    body = text[: text.rindex("end ")].replace(old, new, 1)
    with pytest.raises(PoolError, match=said):
        Index.parse(f"{body}end {hashlib.sha256(body.encode()).hexdigest()}\n".encode())
