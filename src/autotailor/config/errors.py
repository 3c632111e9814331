"""The error of the configuration, and what it quotes of others."""

from __future__ import annotations

from autotailor.ir.errors import AutoTailorError


class ConfigError(AutoTailorError):
    """The configuration names something that does not exist, or has an invalid value."""


def first_line(error: Exception) -> str:
    """The first line of an error's message, or the error's type where the message is empty."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
