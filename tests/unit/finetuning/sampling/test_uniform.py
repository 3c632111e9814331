"""Uniform sampling."""

import numpy as np

import autotailor
from sampling_strategies import make


def test_uniform_reaches_every_choice(resnet_net: autotailor.SuperNet) -> None:
    drawn = make("uniform", resnet_net, 200).draw(0.0, np.random.default_rng(0))
    for variable in resnet_net.space:
        assert {subnet[variable.name] for subnet in drawn} == set(variable.choices)
