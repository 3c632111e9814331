"""A pool of SubNets that share one file of weights, and the choice of the one that meets its deadline now."""

from autotailor.runtime.errors import PoolError
from autotailor.runtime.replay import Choice, Quota, Replay
from autotailor.runtime.service import Service
from autotailor.runtime.wire.bodies import Flag, Reply, Request
from autotailor.runtime.wire.client import Client

__all__ = ["Choice", "Client", "Flag", "PoolError", "Quota", "Replay", "Reply", "Request", "Service"]
