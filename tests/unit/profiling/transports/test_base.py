"""Addresses as a configuration gives them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.profiling.errors import DeviceError
from autotailor.profiling.transports import base
from autotailor.profiling.transports.base import LineSplitter, split_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("board.local", (None, "board.local", None)),
        ("192.168.1.7:5555", (None, "192.168.1.7", 5555)),
        ("me@board:22", ("me", "board", 22)),
        ("[fe80::1]:22", (None, "fe80::1", 22)),
        ("me@[::1]", ("me", "::1", None)),
    ],
)
def test_user_host_and_port_are_told_apart(address: str, expected: tuple[str | None, str, int | None]) -> None:
    assert split_address("orin", address) == expected


@pytest.mark.parametrize("address", ["", "board:ssh", "board:70000", "board/path", "board?x", ":22", "[::1", "me@"])
def test_what_is_no_address_is_refused_with_the_device(address: str) -> None:
    with pytest.raises(DeviceError, match=r"device orin: device\.address is .* for instance board\.local"):
        split_address("orin", address)


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
    monkeypatch.setattr(base, "LONGEST", 5)
    assert split(b"abc", b"defgh", b"ijk\nnext", b" line\nx") == ["abcde", "next ", "x"]
