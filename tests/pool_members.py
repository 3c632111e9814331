"""Networks whose SubNets become members of pools, for the tests of the rule ``pool``."""

import random
from collections.abc import Mapping
from pathlib import Path

import torch

import autotailor
import networks
import tiny_data
from autotailor import config
from autotailor.accuracy import CalibrationConfig, calibrate
from autotailor.compiler.sources.network import create_network
from autotailor.export import inherited
from autotailor.pool.exported import ExportedMember, export_member
from autotailor.pool.writing import Facts
from autotailor.profiling import exporting_runtime

CALIBRATION = CalibrationConfig(images=24, batch_size=24)


def supernet(name: str, alternatives: Mapping[str, object] | None = None) -> autotailor.SuperNet:
    """A SuperNet of one of the networks in tests/networks.py or of ``conf/model``, with sorted channels."""
    if name in networks.NETWORKS | networks.MORE_NETWORKS:
        network, space = networks.make(name), networks.SPACES.get(name)
    else:
        torch.manual_seed(0)
        model = config.compose(config.conf_folder(), name, "host")["model"]
        network, space = create_network(model["source"], pretrained=False).eval(), model["space"]
    space = {**space, "alternatives": alternatives} if alternatives else space
    return autotailor.compile(network, space, name=name, resolution=32).sort_channels()


def export(net: autotailor.SuperNet, subnet: autotailor.SubNet, folder: Path) -> ExportedMember:
    """Exports a SubNet with statistics of its own into a folder."""
    torch.set_num_threads(1)
    splits = tiny_data.splits()
    statistics = calibrate(net.module().eval(), subnet, splits, CALIBRATION)
    return export_member(inherited(net, subnet, statistics), splits.test, exporting_runtime(), folder)


def some_subnets(net: autotailor.SuperNet, count: int, seed: int = 0) -> list[autotailor.SubNet]:
    """Distinct SubNets, among them the smallest and the largest."""
    rng = random.Random(seed)
    found = dict.fromkeys([net.smallest(), net.largest()])
    while len(found) < count:
        found[net.sample(rng)] = None
    return list(found)


def facts(number: int) -> Facts:
    """Facts of the member with this place in the order of latency."""
    split = (0.1 + 0.05 * number, 0.02, 0.01)
    return Facts(90.0 + number, 0.5, True, sum(split), 0.01, None, None, split, 1.5, None)
