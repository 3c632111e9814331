"""``data.verify`` and ``data.load``: one pass over a folder's pictures before anything is trained."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from autotailor import data
from autotailor.data.files import contents
from picture_files import animated, encoded, every_kind, photo, section


@pytest.mark.parametrize("entrance", [data.verify, data.load], ids=["verify", "load"])
def test_every_picture_that_cannot_be_used_is_named_with_its_reason(root: Path, entrance: object) -> None:
    broken = {
        "cut.jpg": encoded(photo(), "JPEG")[:-40], "empty.png": b"", "text.jpg": b"no picture",
        "moving.gif": animated("GIF"), "float.tif": encoded(Image.new("F", (4, 4)), "TIFF"),
    }  # fmt: skip
    for name, content in broken.items():
        (root / "dog" / name).write_bytes(content)
    with pytest.raises(data.DataError) as raised:
        entrance(section(root))  # type: ignore[operator]
    message = str(raised.value)
    assert "5 of 21 pictures cannot be used" in message
    for name, reason in {
        "cut.jpg": "is cut off", "empty.png": "is empty", "text.jpg": "is no picture", "moving.gif": "has 3 frames",
        "float.tif": "has floating-point pixels",
    }.items():  # fmt: skip
        assert re.search(rf"{re.escape(str(root / 'dog' / name))} {reason}", message)


def test_ten_are_listed_and_the_others_counted(root: Path) -> None:
    for i in range(13):
        (root / "cat" / f"bad{i:02d}.jpg").write_bytes(b"")
    with pytest.raises(
        data.DataError, match=r"13 of 29 pictures(.|\n)*bad09.jpg is empty\n  and 3 more\nRepair them"
    ) as raised:
        data.verify(section(root))
    assert str(raised.value).count("is empty") == 10


def test_a_second_pass_reads_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "cat" / "bad.jpg").write_bytes(b"")
    for _ in range(2):
        with pytest.raises(data.DataError, match=r"bad.jpg is empty"):
            data.verify(section(root))
        monkeypatch.setattr(contents, "read_content", lambda key, examiner: pytest.fail(f"{key} was read again"))
    monkeypatch.undo()
    (root / "cat" / "bad.jpg").unlink()
    data.verify(section(root))


def test_hashes_alone_are_no_verdicts(root: Path) -> None:
    (root / "cat" / "bad.jpg").write_bytes(b"")
    before = data.fingerprint(section(root))
    with pytest.raises(data.DataError, match=r"bad.jpg is empty"):
        data.verify(section(root))
    assert data.fingerprint(section(root)) == before


def test_every_kind_is_trained_on_as_it_is_meant(root: Path) -> None:
    for number, content in enumerate(every_kind().values()):
        (root / "dog" / f"kind{number}.img.png").write_bytes(content)  # the content decides, not the suffix
    deep = np.linspace(0, 65535, 24 * 24).astype(np.uint16).reshape(24, 24)
    for folder in root.iterdir():
        for number in range(20):
            (folder / f"deep{number}.png").write_bytes(encoded(Image.fromarray(deep + number), "PNG"))
    splits = data.load(section(root, mean=[0, 0, 0], std=[1, 1, 1], scale=[1, 1], flip=False))
    images = next(splits.train.batches(0, len(splits.train)))[0]
    ramps = images[(images.amax((1, 2, 3)) > 0.97) & (images.std(1).amax((1, 2)) < 0.01)]
    assert len(ramps) > 20
    assert 0.4 < ramps.mean() < 0.6


def test_equal_pictures_in_two_classes_or_parts_are_told(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    (root / "dog" / "9.png").write_bytes((root / "cat" / "1.png").read_bytes())
    with caplog.at_level(logging.WARNING):
        data.verify(section(root))
    assert re.search(r"1 picture lies in two classes; remove one .*:\n.*cat/1.png and .*dog/9.png", caplog.text)
    caplog.clear()
    (root / "dog" / "9.png").unlink()
    for part in ("train", "val"):
        for name in ("cat", "dog"):
            (root / part / name).mkdir(parents=True)
            (root / part / name / "0.png").write_bytes((root / name / "0.png").read_bytes())
    with caplog.at_level(logging.WARNING):
        data.verify(section(root))
    assert "2 pictures lie in two of train, val and test" in caplog.text


def test_a_picture_that_goes_bad_while_it_is_used_is_named(root: Path) -> None:
    splits = data.load(section(root))
    for path in root.rglob("*.png"):
        os.truncate(path, 60)
    with pytest.raises(data.DataError, match=r"\.png: is cut off.*changed while it was in use"):
        next(splits.validation.batches(4))


def test_a_name_of_any_bytes_can_be_printed_and_logged(root: Path) -> None:
    (root / "cat" / os.fsdecode(b"\xff.jpg")).write_bytes(b"")
    with pytest.raises(data.DataError, match=r"udcff\.jpg is empty") as raised:
        data.verify(section(root))
    str(raised.value).encode("utf-8")


def test_pictures_beside_the_folders_of_classes_are_told(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    (root / "astray.jpg").write_bytes(encoded(photo(7), "JPEG"))
    (root / ".hidden.jpg").write_bytes(b"")
    data.verify(section(root))
    assert "1 picture lies beside the folders of the classes, and is left out" in caplog.text
    assert f"\n  {root / 'astray.jpg'}" in caplog.text
