"""A pool on another device: it is sent there, served there by ``autotailor-serve``, and asked from here.

The server on the device listens on a port of the device's loopback interface. This process listens where a server of
this computer would, and hands each request on through the device's transport. So clients need not know where the pool
runs, and nothing runs on the device longer than this process.

Where this process is killed, or does not reach the device any more, nobody can end the server there. So the server has
a lease: it ends by itself where no request has come for a while. This process asks it all the time. A connection that
breaks for a shorter while costs nothing but the requests of that time.
"""

import logging
import math
import re
from collections.abc import Sequence
from pathlib import Path

from autotailor.commands.terminal import say
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError, OverdueError, TransientError
from autotailor.profiling.host.lock import held
from autotailor.profiling.runtimes.runner.binary import server_binary
from autotailor.profiling.transports import Transport, open_transport
from autotailor.profiling.transports.base import Deadline
from autotailor.serving.errors import PoolError, ServerLostError
from autotailor.serving.files import Index, check_successor, whole_pool
from autotailor.serving.wire import Address, Client, Relay
from autotailor.serving.wire.bodies import most_request_bytes
from autotailor.serving.wire.client import TIMEOUT_S

logger = logging.getLogger(__name__)

STARTING_S = 120.0
"""Seconds within which the server on the device must listen: it reads the whole pool first."""
ENDING_S = 10.0
"""Seconds within which a server that does not answer any more must have ended."""
LOOK_S = 5.0
"""Seconds between two looks whether the server still answers, at most."""
LOOKS = 5
"""Looks within a lease, at least: one that is lost must not end the server."""
LEASE_S = 2 * TIMEOUT_S
"""Seconds without a request after which the server on the device ends by itself.

A connection that has gone silent is given up after ``TIMEOUT_S``, and a new one must still find the server. The time in
which a new pool is sent comes on top, because requests wait meanwhile.
"""
SLOWEST = 1_000_000
"""Bytes a second at which a pool is sent at least; on a slower way, ``--lease-s`` says more."""
KEY = re.compile(r"key ([0-9a-f]+)")
LISTENING = re.compile(r"serving .* at tcp:(\d+)")


class StoppedError(Exception):
    """A client has stopped the server."""


def serve(
    folder: Path, device: DeviceConfig, address: Address, options: Sequence[str], lease_s: float | None = None
) -> None:
    """Serves a pool on a device until a client stops it. Nothing that runs is left there, whatever ends this.

    Args:
        folder: of the pool.
        device: the device's configuration.
        address: where clients of this computer connect.
        options: of ``autotailor-serve``.
        lease_s: seconds without a request after which the server there ends by itself; None: see ``LEASE_S``.

    Raises:
        PoolError: the pool is not whole, was made for another device, or the address cannot be used.
        DeviceError: the device cannot be used, or the server there has ended.
    """
    index = whole_pool(folder).index
    if index.device != device.name:
        raise PoolError(
            f"{folder}: the pool was made for the device {index.device}, and its latencies are not those of "
            f"{device.name}: make one with `autotailor run model={index.model} device={device.name} -- pool`, or "
            f"add device.name={index.device} where both devices are of one kind"
        )
    with open_transport(device) as transport:
        transport.check()
        with held(transport, device.name) as user:
            if user is not None:
                raise DeviceError(f"device {device.name} is in use by {user}: end that first")
            lease_s = lease_for(index) if lease_s is None else lease_s
            Remote(folder, index, device, transport, lease_s).serve(address, options)


def lease_for(index: Index) -> float:
    """Seconds of the lease of a pool's server, see ``LEASE_S``; whole ones."""
    return float(math.ceil(LEASE_S + (index.weights.bytes + index.norms.bytes) / SLOWEST))


class Remote:
    """A pool on a device that this process holds.

    Args:
        folder: of the pool.
        index: of the pool.
        device: the device's configuration.
        transport: to the device.
        lease_s: seconds without a request after which the server there ends by itself.
    """

    def __init__(self, folder: Path, index: Index, device: DeviceConfig, transport: Transport, lease_s: float) -> None:
        self._folder, self._index, self._device, self._transport = folder, index, device, transport
        self._lease_s = lease_s
        self._port, self._key = 0, ""

    def serve(self, address: Address, options: Sequence[str]) -> None:
        """Serves until a client stops the server."""
        program = server_binary(self._device.name, self._transport.probe())
        largest = most_request_bytes(self._index.largest_input)
        deadline = Deadline(STARTING_S)
        with Relay(address, self._connect, largest, self._renew) as relay:

            def on_line(line: str) -> None:
                if match := KEY.fullmatch(line):
                    self._key = match[1]
                if match := LISTENING.fullmatch(line):
                    self._port = int(match[1])
                    self._hand_on(relay)
                    deadline.renew(ENDING_S)

            say(f"sending to {self._device.name} what has changed of {self._folder}")
            own = ["--tcp", "0", "--lease-s", str(self._lease_s)]
            is_moved = self._device.cores != self._index.cores
            if is_moved:  # cores that are asked for must exist there
                own += ["--cores", ",".join(map(str, self._device.cores)) or "any"]
            command = [self._transport.keep(program), self._push(), *own, *options]
            deadline.renew(STARTING_S)
            try:
                code = self._transport.run(command, on_line, deadline)
            except StoppedError:
                return
            except OverdueError as error:
                raise DeviceError(
                    f"device {self._device.name}: {program.name} there does not serve, and was stopped: is the device "
                    "busy, or short of memory?"
                ) from error
        source = " (--cores is device.cores of the configuration)" if is_moved else ""
        raise DeviceError(
            f"device {self._device.name}: {program.name} ended with exit code {code}: "
            f"{self._transport.last_error or 'it gave no reason'}{source}; start it again with "
            "`autotailor runtime serve`"
        )

    def _push(self) -> str:
        """The pool's folder on the device."""
        return self._transport.keep_all(self._folder, self._index.files, f"pool-{self._index.model}")

    def _renew(self) -> int:
        """Sends what has changed of the folder; returns the largest request that the pool takes now."""
        index = whole_pool(self._folder).index
        check_successor(self._index, index)
        self._index = index
        self._push()
        return most_request_bytes(index.largest_input)

    def _connect(self) -> Client:
        where = f"device {self._device.name}"
        client = Client(where, connection=self._transport.dial(self._port))
        if self._key:
            client.open(self._key)  # other users of the device can connect as well, and may only ask
        return client

    def _hand_on(self, relay: Relay) -> None:
        """Hands requests on until the server on the device is gone; raises StoppedError where a client says stop."""
        try:
            deadline_ms = relay.status()["settings"]["deadline_ms"]
            relay.start()
            say(
                f"serving {len(self._index.members)} members of {self._folder} on {self._device.name} at "
                f"{relay.address}; deadline {deadline_ms:.3g} ms",
            )
            was_away = False
            while not relay.stopped.wait(min(LOOK_S, self._lease_s / LOOKS)):
                error = _silence(relay)
                if isinstance(error, DeviceError) and not isinstance(error, TransientError):
                    return
                if error and not was_away:
                    logger.warning("%s: clients get errors until the device answers again", error)
                was_away = error is not None
            raise StoppedError
        finally:  # from here on no client uses the transport
            relay.close()


def _silence(relay: Relay) -> BaseException | None:
    """Why the server does not answer, also not through a new connection; None where it does."""
    for _ in range(2):
        try:
            relay.status()
            return None
        except ServerLostError as error:
            cause = error.__cause__ or error
    return cause
