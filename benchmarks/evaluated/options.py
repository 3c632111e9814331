"""What the benchmarks of predicted accuracy are asked: which SuperNets, and which of their SubNets are evaluated."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from sampled.variants import VARIANTS

from evaluated.finished import FinishedNetwork
from evaluated.network import VARIANT, Network


def add_options(parser: argparse.ArgumentParser, pool: int) -> None:
    """Adds the options that ``asked`` reads; ``pool`` is the default number of SubNets to learn from."""
    parser.add_argument("--models", nargs="+", default=["resnet_digits"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--pool", type=int, default=pool, help="random SubNets to learn from")
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANT, help="of the training, as in sampling.py")
    parser.add_argument("--overrides", nargs="*", default=[], help="of the configuration, such as workers=1")
    parser.add_argument("--directory", type=Path, default=Path("sampling"))
    parser.add_argument("--finished", metavar="DEVICE", help="--directory is a project whose run is finished")


def asked(arguments: argparse.Namespace) -> Iterator[Network]:
    """The SuperNet of each model and seed."""
    sizes, overrides = (arguments.held_out, arguments.pool), tuple(arguments.overrides)
    for model in arguments.models:
        if arguments.finished:
            yield FinishedNetwork(
                arguments.directory.resolve(), model, arguments.seeds[0], *sizes, overrides, device=arguments.finished
            )
            continue
        for seed in arguments.seeds:
            yield Network(arguments.directory.resolve(), model, seed, *sizes, overrides, arguments.variant)
