"""The wire protocol of a pool's server: frames, what they carry, the client, and the relay to a server elsewhere."""

from autotailor.runtime.wire.address import Address
from autotailor.runtime.wire.bodies import Flag, Reply, Request
from autotailor.runtime.wire.client import Client
from autotailor.runtime.wire.relay import Relay

__all__ = ["Address", "Client", "Flag", "Relay", "Reply", "Request"]
