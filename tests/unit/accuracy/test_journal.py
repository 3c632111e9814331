from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from autotailor.accuracy.journal import Journal


def test_what_is_added_is_known_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    right = np.random.default_rng(0).random(13) < 0.5
    Journal(path, "a").add("one", right)
    again = Journal(path, "a")
    assert np.array_equal(again.get("one"), right)
    assert again.get("two") is None


@pytest.mark.parametrize("tail", ['{"subnet": "two", "ima', '{"subnet": "two"}\n', "\x00\x00", "17\n"])
def test_a_torn_line_is_dropped_and_the_rest_kept(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "j"
    right = np.array([True, False, True])
    Journal(path, "a").add("one", right)
    with path.open("a") as stream:
        stream.write(tail)
    journal = Journal(path, "a")
    journal.add("two", ~right)
    final = Journal(path, "a")
    assert np.array_equal(final.get("one"), right)
    assert np.array_equal(final.get("two"), ~right)


def test_another_runs_journal_is_begun_anew_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Journal(tmp_path / "j", "a").add("one", np.array([True]))
    with caplog.at_level(logging.WARNING):
        assert Journal(tmp_path / "j", "b").get("one") is None
    assert "all SubNets are evaluated" in caplog.text
    assert Journal(tmp_path / "j", "a").get("one") is None
