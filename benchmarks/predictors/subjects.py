"""The networks to judge predictors on, and their SubNets. Weights are random, as latency does not depend on them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import autotailor
from autotailor import config
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.compiler.sources.export import export_module
from autotailor.compiler.sources.network import create_network
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.device import PROTOCOL, DeviceConfig
from autotailor.profiling.networks.validation import converted

CONF = Path(__file__).parents[2] / "conf"
SUBJECTS = {
    "resnet_digits": "resnet_digits",
    "mobilenetv2": "mobilenetv2",
    "mobilenetv3_large": "timm:mobilenetv3_large_100",
    "efficientnet_b0": "timm:efficientnet_b0",
    "vit_tiny": "timm:vit_tiny_patch16_224",
    "levit_256": "timm:levit_conv_256",
    "resnet50": "resnet50",
    "convnext_tiny": "convnext_tiny",
    "resnet18_64": "timm:resnet18@64",
    "regnety_004_64": "timm:regnety_004@64",
    "mobilenetv3_large_64": "timm:mobilenetv3_large_100@64",
    "convnext_atto_64": "timm:convnext_atto@64",
}
"""Name to a model of ``conf/model``, which has a space, or to a network whose space autotailor proposes.

Behind an ``@`` stands the side of the images in pixels. With 64 pixels a network reads more weights than activations,
so that memory bounds more of its latency. LeViT is timm's variant with convolutions: ncnn cannot run the BatchNorm over
flattened tokens of the linear variant.
"""
SEED, TRAINING_SEED = 1, 2


@dataclass(frozen=True)
class Subject:
    """A SuperNet and the SubNets that predictions are judged on.

    Attributes:
        name: the network's name.
        net: the SuperNet.
        subnets: distinct random SubNets.
        folder: folder for everything that is kept about the network.
    """

    name: str
    net: SuperNet
    subnets: tuple[SubNet, ...]
    folder: Path

    def networks(self, device: DeviceConfig) -> dict[str, tuple[Path, tuple[int, ...]]]:
        """SubNet id to the folder of its converted files and its input's shape. Converted files are kept."""
        converted_to = self.folder / "networks"
        return {s.id: (converted(self.net, s, device, converted_to), self.shape(s)) for s in self.subnets}

    def shape(self, subnet: SubNet) -> tuple[int, ...]:
        """Shape of a SubNet's input, ``[1, 3, r, r]``."""
        return self.net.shapes(subnet)[self.net.graph.input]

    def operators(self, fusion: FusionRules) -> tuple[OperatorFeature, ...]:
        """The distinct operators of all SubNets."""
        return tuple(dict.fromkeys(f for subnet in self.subnets for f in self.net.operators(subnet, fusion)))

    def others(self, count: int) -> tuple[SubNet, ...]:
        """Random SubNets on which predictors are not judged, for training those predictors that learn."""
        return sample(self.net, count, TRAINING_SEED, self.subnets)


def sample(net: SuperNet, count: int, seed: int, avoid: tuple[SubNet, ...] = ()) -> tuple[SubNet, ...]:
    """Distinct random SubNets."""
    rng = random.Random(seed)
    found: dict[SubNet, None] = {}
    while len(found) < min(count, net.space.num_distinct - len(avoid)):
        subnet = net.sample(rng)
        if subnet not in avoid:
            found[subnet] = None
    return tuple(found)


def subject(name: str, count: int, workdir: Path, runtime: str) -> Subject:
    """A network with its SubNets. The network is compiled once and then kept."""
    path = workdir / f"{name}.pt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        compile_network(SUBJECTS[name]).save(path)
    net = autotailor.load(path)
    folder = workdir / runtime / f"{name}-{PROTOCOL}"  # measurements of different protocols are not comparable
    return Subject(name, net, sample(net, count, SEED), folder)


def compile_network(source: str) -> SuperNet:
    """The SuperNet of a model of ``conf/model`` or of a timm network, with random weights."""
    torch.manual_seed(0)
    if ":" in source:
        network, _, side = source.partition("@")
        return autotailor.compile(
            _drawn(create_network(network, pretrained=False)), resolution=int(side) if side else None
        )
    model = config.compose(CONF, source, "host")["model"]
    graph = export_module(_drawn(create_network(model["source"], pretrained=False)), model["resolution"])
    return autotailor.SuperNet.of(parse(normalise(graph), source), model["space"])


def _drawn(network: nn.Module) -> nn.Module:
    """Draws weights that start as zeros, because a converter may leave out an operator that adds zeros."""
    for weight in network.parameters():
        if not weight.any():
            nn.init.normal_(weight, std=0.02)
    return network
