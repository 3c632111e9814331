"""The wire protocol of a pool's server: frames, what they carry, the client and the server."""

from autotailor.runtime.wire.address import Address
from autotailor.runtime.wire.bodies import Flag, Reply, Request
from autotailor.runtime.wire.client import Client
from autotailor.runtime.wire.relay import Relay
from autotailor.runtime.wire.server import Backend, Server

__all__ = ["Address", "Backend", "Client", "Flag", "Relay", "Reply", "Request", "Server"]
