"""Bytes as they come, split into lines."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.profiling.transports import lines
from autotailor.profiling.transports.lines import LineSplitter


def split(*pieces: bytes) -> list[str]:
    splitter = LineSplitter()
    return [*(line for piece in pieces for line in splitter.feed(piece)), *splitter.rest()]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r")), st.lists(st.integers(0, 30), max_size=5))
def test_where_the_bytes_are_cut_does_not_matter(text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    expected = text.split("\n")
    assert split(*pieces) == (expected if expected[-1] else expected[:-1])


def test_line_ends_of_windows_and_broken_letters_do_no_harm() -> None:
    assert split(b"a\r\nb\r", b"\n\xff\n") == ["a", "b", "\ufffd"]


def test_a_line_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 5)
    assert split(b"abc", b"defgh", b"ijk\nnext", b" line\nx") == ["abcde", "next ", "x"]
