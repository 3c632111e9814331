"""The error of the configuration."""

from autotailor.ir.errors import AutoTailorError


class ConfigError(AutoTailorError):
    """The configuration names something that does not exist, or has an invalid value."""
