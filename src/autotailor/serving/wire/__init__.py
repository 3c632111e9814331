"""The wire protocol of a pool's server: frames, what they carry, the client, and the relay to a server elsewhere."""

from autotailor.serving.wire.address import Address
from autotailor.serving.wire.bodies import Flag, Reply, Request
from autotailor.serving.wire.client import Client
from autotailor.serving.wire.relay import Relay

__all__ = ["Address", "Client", "Flag", "Relay", "Reply", "Request"]
