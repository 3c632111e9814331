"""Small networks with untrained heads."""

from collections.abc import Callable

import numpy as np
import pytest

import autotailor
import networks
from autotailor.exits.costs import WithExits
from autotailor.exits.heads import find_exits, initial, with_exits
from autotailor.ir.supernet import SuperNet

Headed = Callable[[SuperNet, str, int], WithExits]


@pytest.fixture(scope="session")
def net() -> SuperNet:
    """A residual network of two stages."""
    return autotailor.compile(networks.make("resnet"), resolution=32)


@pytest.fixture(scope="session")
def headed() -> Headed:
    """Makes a random SubNet with random heads behind the first block and behind the one before the last."""

    def make(net: SuperNet, kind: str, seed: int) -> WithExits:
        random = np.random.default_rng(seed)
        subnet = net.sample(random)
        graph = net.slice(subnet)
        places = find_exits(net, subnet, graph, (net.blocks[0].name, net.blocks[-2].name), kind)
        heads = [initial(place, kind, net.num_classes, random) for place in places]
        for arrays in heads:
            arrays["weight"] = random.normal(size=arrays["weight"].shape).astype(np.float32)
        return WithExits(with_exits(graph, places, heads), places)

    return make
