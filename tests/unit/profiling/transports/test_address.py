"""Addresses as a configuration gives them."""

from __future__ import annotations

import pytest

from autotailor.profiling.errors import DeviceError
from autotailor.profiling.transports.address import split_address


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
