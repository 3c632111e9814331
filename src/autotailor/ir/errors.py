"""Errors of autotailor: each message names the object, what was expected, and the remedy."""


class AutoTailorError(Exception):
    """Base of every error that autotailor raises on purpose."""


class GraphError(AutoTailorError):
    """A computation graph cannot be read or is not what the IR expects."""


class SpaceError(AutoTailorError):
    """A search space asks for something that the network cannot offer."""


class IllegalSubNetError(AutoTailorError):
    """An assignment of variables does not describe a network."""
