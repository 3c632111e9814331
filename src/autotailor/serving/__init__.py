"""A pool of SubNets that share one file of weights, and the choice of the one that meets its deadline now."""

from autotailor.serving.errors import PoolError
from autotailor.serving.replay import Choice, Quota, Replay
from autotailor.serving.service import Service
from autotailor.serving.wire.bodies import Flag, Reply, Request
from autotailor.serving.wire.client import Client

__all__ = ["Choice", "Client", "Flag", "PoolError", "Quota", "Replay", "Reply", "Request", "Service"]
