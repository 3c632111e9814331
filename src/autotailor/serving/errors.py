"""Errors of pools and their servers."""

from autotailor.ir.errors import AutoTailorError


class PoolError(AutoTailorError):
    """A pool cannot be made, read or run, or a request or a policy of its server is invalid."""


class ServerLostError(PoolError):
    """The connection to a server has failed, and nobody knows what becomes of the request."""
