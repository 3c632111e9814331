"""A network that tests of the IR share."""

import pytest

import autotailor
import networks


@pytest.fixture(scope="session")
def transformer_net() -> autotailor.SuperNet:
    """The small transformer, compiled with its space."""
    space = networks.SPACES["transformer"]
    return autotailor.compile(networks.make("transformer"), space, name="transformer", resolution=32)
