from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.accuracy.journal import Journal
from autotailor.prediction import Outcome


def outcome(images: int, seed: int = 0) -> Outcome:
    random = np.random.default_rng(seed)
    return Outcome(random.random(images) < 0.5, random.exponential(1.0, images).astype(np.float32))


def check(found: Outcome | None, expected: Outcome) -> None:
    assert found is not None
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.losses, expected.losses)


@pytest.mark.parametrize("is_divergence", [False, True])
def test_what_is_added_is_known_to_the_next(tmp_path: Path, is_divergence: bool) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    Journal(path, "a").add("one", replace(outcome(13), is_divergence=is_divergence))
    again = Journal(path, "a")
    found = again.get("one")
    check(found, outcome(13))
    assert found is not None
    assert found.is_divergence == is_divergence
    assert again.get("two") is None


@pytest.mark.parametrize(
    "tail",
    [
        '{"subnet": "two", "ima',
        '{"subnet": "two"}\n',
        '{"subnet": "two", "images": 3, "right": "AA==", "losses": "AAAA"}\n',
        "\x00\x00",
        "17\n",
    ],
)
def test_a_torn_line_is_dropped_and_the_rest_kept(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "j"
    Journal(path, "a").add("one", outcome(3))
    with path.open("a") as stream:
        stream.write(tail)
    journal = Journal(path, "a")
    assert journal.get("two") is None
    journal.add("two", outcome(3, 1))
    final = Journal(path, "a")
    check(final.get("one"), outcome(3))
    check(final.get("two"), outcome(3, 1))


def test_another_runs_journal_is_begun_anew_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Journal(tmp_path / "j", "a").add("one", outcome(1))
    with caplog.at_level(logging.WARNING):
        assert Journal(tmp_path / "j", "b").get("one") is None
    assert "belongs to another network, data or parameters; all SubNets are evaluated anew" in caplog.text
    assert Journal(tmp_path / "j", "a").get("one") is None


@pytest.mark.parametrize("version", [{}, {"schema_version": 1}, {"schema_version": 3}], ids=["none", "1", "3"])
def test_a_journal_of_another_version_is_begun_anew_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: dict[str, int]
) -> None:
    """The first version had no number, and its lines held right answers only."""
    lines = [{**version, "fingerprint": "a"}, {"subnet": "one", "images": 3, "right": "a0"}]
    (tmp_path / "j").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with caplog.at_level(logging.WARNING):
        journal = Journal(tmp_path / "j", "a")
    assert "was written by another version of autotailor, in another form; all SubNets are evaluated" in caplog.text
    assert journal.get("one") is None
    journal.add("one", outcome(3))
    check(Journal(tmp_path / "j", "a").get("one"), outcome(3))


@pytest.mark.parametrize("content", ["", "no JSON\n", "[1]\n"], ids=["empty", "text", "list"])
def test_a_file_that_is_no_journal_is_begun_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "j").write_text(content)
    Journal(tmp_path / "j", "a").add("one", outcome(3))
    check(Journal(tmp_path / "j", "a").get("one"), outcome(3))
