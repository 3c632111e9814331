"""Addresses as a configuration gives them."""

from __future__ import annotations

from urllib.parse import urlsplit

from autotailor.profiling.errors import DeviceError


def split_address(device: str, address: str) -> tuple[str | None, str, int | None]:
    """Splits ``[user@]host[:port]``.

    Args:
        device: the device's name, for messages.
        address: what the configuration says; an IPv6 address stands in brackets.

    Returns:
        User, host and port; None for a user or port that the address does not give.

    Raises:
        DeviceError: the text is no address.
    """
    try:
        parts = urlsplit(f"//{address}")
        found = parts.port
    except ValueError:
        parts, found = None, None
    if parts is None or not parts.hostname or parts.path or parts.query:
        raise DeviceError(
            f"device {device}: device.address is {address!r}, expected a host name or address with an optional port, "
            f"for instance board.local or 192.168.1.7:5555"
        )
    return parts.username, parts.hostname, found
