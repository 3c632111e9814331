"""``autotailor runtime serve POOL``: serves a pool until it is stopped."""

from __future__ import annotations

import argparse
import signal

from autotailor.commands.runtime.place import add_address, add_pool, address_of, pool_folder


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``serve``."""
    parser = actions.add_parser(
        "serve",
        help="serve a pool on a socket",
        description="Serves a pool until a client stops it, or until it is interrupted. Programs ask it through "
        "autotailor.runtime.Client.",
    )
    add_pool(parser)
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
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Serves.

    Raises:
        PoolError: the pool cannot be read, or the address cannot be used.
    """
    from autotailor.runtime import Service
    from autotailor.runtime.wire import Address, Server

    folder = pool_folder(options.pool)
    policy = {"quantile": options.quantile, "rate": options.rate}
    with (
        Service.of(folder, options.deadline_ms, **policy) as service,
        Server(service, Address.parse(address_of(options))) as server,
    ):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stop())
        deadline = service.chooser.settings.policy.deadline_ms
        print(
            f"serving {len(service.names)} members of {folder} at {server.address}; deadline {deadline:.3g} ms",
            flush=True,
        )
        server.run()
    print("stopped", flush=True)
