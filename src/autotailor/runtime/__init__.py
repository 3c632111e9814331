"""A pool of SubNets that share one file of weights, and the choice of the one that meets its deadline now."""

from autotailor.runtime.controller import Decision, Policy, bounds_ms, decide, scores
from autotailor.runtime.errors import PoolError
from autotailor.runtime.forecast import Forecast
from autotailor.runtime.load import LoadModel
from autotailor.runtime.monitor import Monitor
from autotailor.runtime.serving.service import Service
from autotailor.runtime.table import CLASSES, Entry, Limits, Table
from autotailor.runtime.wire.bodies import Flag, Reply, Request
from autotailor.runtime.wire.client import Client

__all__ = [
    "CLASSES",
    "Client",
    "Decision",
    "Entry",
    "Flag",
    "Forecast",
    "Limits",
    "LoadModel",
    "Monitor",
    "Policy",
    "PoolError",
    "Reply",
    "Request",
    "Service",
    "Table",
    "bounds_ms",
    "decide",
    "scores",
]
