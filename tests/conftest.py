"""What all tests share."""

import pytest
import torch

import autotailor
import networks
from sessions import resume, skips, tiers

torch.set_num_threads(1)  # test files run side by side


def pytest_addoption(parser: pytest.Parser) -> None:
    for add_option in (resume.add_option, tiers.add_option):
        add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (resume, skips, tiers):
        config.pluginmanager.register(plugin)


@pytest.fixture(scope="session", params=sorted(networks.NETWORKS))
def any_net(request: pytest.FixtureRequest) -> autotailor.SuperNet:
    """Each of the small networks, compiled with its space."""
    return autotailor.compile(
        networks.make(request.param), networks.SPACES[request.param], name=request.param, resolution=32
    )


@pytest.fixture(scope="session")
def resnet_net() -> autotailor.SuperNet:
    """The small ResNet, compiled with its space."""
    return autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], name="resnet", resolution=32)
