"""Files of data are read once, and again only where they have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autotailor import data
from autotailor.data.files import contents
from picture_files import section


def read_files(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Which files are read from now on."""
    read: list[bytes] = []
    original = contents.read_content

    def spy(key: bytes, examiner: contents.Examiner | None) -> contents.Content:
        read.append(key)
        return original(key, examiner)

    monkeypatch.setattr(contents, "read_content", spy)
    return read


def test_nothing_is_read_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = read_files(monkeypatch)
    before = data.fingerprint(section(root))
    assert len(read) == 12
    assert data.fingerprint(section(root)) == before
    assert len(read) == 12
    os.utime(root / "val" / "cat" / "1.png", (1, 1))
    assert data.fingerprint(section(root)) == before
    assert read[12:] == [os.fsencode(root / "val" / "cat" / "1.png")]


def test_a_file_that_was_just_written_is_not_trusted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SETTLED_NS", 10**12)
    read = read_files(monkeypatch)
    assert data.fingerprint(section(root)) == data.fingerprint(section(root))
    assert len(read) == 24


def test_a_file_that_cannot_be_read_is_named(root: Path) -> None:
    (root / "train" / "cat" / "broken.png").symlink_to("nowhere.png")
    with pytest.raises(data.DataError, match=r"broken\.png: cannot be read \(No such file"):
        data.fingerprint(section(root))


def test_pipes_devices_and_files_without_end_are_refused_by_name_and_not_read(root: Path) -> None:
    folder = root / "train" / "cat"
    os.mkfifo(folder / "pipe.jpg")
    (folder / "zeros.jpg").symlink_to("/dev/zero")
    with (folder / "sparse.jpg").open("wb") as sparse:
        sparse.truncate(2**32)
    with pytest.raises(data.DataError, match="3 of 15 pictures cannot be used") as refused:
        data.verify(section(root))
    for name in ("pipe.jpg is a pipe, a dev", "zeros.jpg is a pipe, a dev", "sparse.jpg has 4,294,967,296 bytes"):
        assert str(refused.value).count(name) == 1


def test_a_pass_that_was_interrupted_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "BATCH", 5)
    read, original = [], contents.read_content

    def stop(key: bytes, examiner: contents.Examiner | None) -> contents.Content:
        if len(read) == 7:
            raise KeyboardInterrupt
        read.append(key)
        return original(key, examiner)

    monkeypatch.setattr(contents, "read_content", stop)
    monkeypatch.setattr(contents, "cores", lambda: 1)
    with pytest.raises(KeyboardInterrupt):
        data.fingerprint(section(root))
    monkeypatch.setattr(contents, "read_content", original)
    again = read_files(monkeypatch)
    data.fingerprint(section(root))
    assert len(again) == 7  # of twelve, five were committed
