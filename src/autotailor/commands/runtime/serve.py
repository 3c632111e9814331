"""``autotailor runtime serve POOL [--device NAME]``: serves a pool, here or on a device, until it is stopped.

The first signal ends the work in order, and further ones do not disturb the tidying up. A closed terminal ends the
command, too, unless it was started with ``nohup``.
"""

from __future__ import annotations

import argparse
import signal
from contextlib import suppress
from types import FrameType
from typing import Any

from autotailor.commands.runtime.place import add_address, add_pool, address_of, pool_folder
from autotailor.commands.terminal import given_path, say

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``serve``."""
    parser = actions.add_parser(
        "serve",
        help="serve a pool on a socket",
        description="Serves a pool until a client stops it, or until it is interrupted. Programs ask it through "
        "autotailor.serving.Client. With --device the pool is sent to a device and served there by autotailor-serve; "
        "clients of this computer ask it as they would without --device, and nothing is left running there.",
    )
    add_pool(parser)
    parser.add_argument(
        "--device",
        nargs="+",
        metavar=("NAME", "KEY=VALUE"),
        help="serve on this device, a file of conf/device, with overrides as in a run: device.cores=[0]",
    )
    parser.add_argument("--conf", type=given_path, metavar="FOLDER", help="the configuration of --device (conf)")
    add_address(parser, "--listen", "where to listen")
    parser.add_argument(
        "--deadline-ms",
        type=float,
        metavar="MS",
        help="of one inference (default: 1.25 times the largest member's latency)",
    )
    parser.add_argument(
        "--quantile", type=float, default=0.95, help="probability with which an inference meets its deadline"
    )
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second that must fit; 0: one at a time")
    parser.add_argument(
        "--thresholds",
        metavar="NAME",
        help="of exits: the name of a budget, or guaranteed; empty: pictures leave at their deadline only",
    )
    parser.add_argument(
        "--cores",
        metavar="N,N,...",
        help="without --device: cores that inferences run on, or `any` (default: those on which the pool was measured)",
    )
    parser.add_argument(
        "--sensors",
        type=given_path,
        metavar="FOLDER",
        help="without --device: folder that holds the machine's proc and sys, where a container has them elsewhere (/)",
    )
    parser.add_argument(
        "--lease-s",
        type=float,
        metavar="S",
        help="with --device: seconds for which the server there goes on when this command no longer reaches it "
        "(default: 120, and a second for each MB of the pool)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Serves the pool until SIGINT or SIGTERM, or until a client stops it.

    Raises:
        PoolError: the pool cannot be read, the address cannot be used, or an option is invalid.
        ConfigError: the device is unknown, or an override is invalid.
        DeviceError: the device cannot be used.
    """
    from autotailor.serving import PoolError

    if options.device and options.sensors is not None:
        raise PoolError("--sensors: the sensors of a device are its own; leave this option out")
    if options.device and options.cores is not None:
        raise PoolError("--cores: the cores of a device are those of its configuration; say device.cores=[...] instead")
    if options.device:
        _serve_there(options)
    elif options.lease_s is not None:
        raise PoolError("--lease-s: only a server on a device has a lease; name one with --device, or leave it out")
    else:
        _serve_here(options)


def _serve_here(options: argparse.Namespace) -> None:
    """Serves on this computer."""
    from autotailor.commands.runtime import local
    from autotailor.serving import PoolError
    from autotailor.serving.wire import Address

    words = _policy(options)
    if (root := options.sensors) is not None:
        if not any((root / name).is_dir() for name in ("proc", "sys")):
            raise PoolError(f"--sensors {root}: holds neither proc nor sys; name the folder that holds these folders")
        words += ["--sensors", str(root)]
    if options.cores is not None:
        words += ["--cores", options.cores]
    local.serve(pool_folder(options.pool), Address.parse(address_of(options)), words)


def _policy(options: argparse.Namespace) -> list[str]:
    """What is asked of a pool, as options of ``autotailor-serve``."""
    words = ["--quantile", str(options.quantile), "--rate", str(options.rate)]
    for flag, value in (("--deadline-ms", options.deadline_ms), ("--thresholds", options.thresholds)):
        words += [] if value is None else [flag, str(value)]
    return words


def _serve_there(options: argparse.Namespace) -> None:
    """Serves on a device."""
    from autotailor import config
    from autotailor.commands.runtime import remote
    from autotailor.profiling.device import DeviceConfig
    from autotailor.serving.wire import Address

    name, *overrides = options.device
    section = config.compose(config.conf_folder(options.conf), None, name, overrides)["device"]
    device, address = DeviceConfig.from_section(section), Address.parse(address_of(options))
    with Interruption():
        with suppress(KeyboardInterrupt):
            remote.serve(pool_folder(options.pool), device, address, _policy(options), options.lease_s)
        say("stopped")


class Interruption:
    """While the context is open, the first signal raises KeyboardInterrupt, and further ones do nothing."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        for number in NUMBERS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, *_: int | FrameType | None) -> None:
        for number in NUMBERS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt
