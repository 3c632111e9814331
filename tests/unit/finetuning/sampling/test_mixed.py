"""Mixed: shares of the ends, one resolution in each step, and SubNets between by distance or by MACs."""

import numpy as np
import pytest

import autotailor
import networks
from autotailor.finetuning import TrainingError, sampling
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.space.variable import Modification
from sampling_strategies import make

STEPS = 400


def drawn(strategy: sampling.Strategy, steps: int = STEPS) -> list[tuple[SubNet, ...]]:
    return [strategy.draw(0.0, np.random.default_rng(step)) for step in range(steps)]


def without_resolution(subnet: SubNet) -> dict[str, float]:
    return {name: choice for name, choice in subnet.assignment.items() if name != "resolution"}


def test_the_ends_have_their_shares_at_every_resolution(resnet_net: autotailor.SuperNet) -> None:
    subnets = [s for (s,) in drawn(make("mixed", resnet_net, 1, largest=0.4, smallest=0.3))]
    for end, share in ((resnet_net.largest(), 0.4), (resnet_net.smallest(), 0.3)):
        alike = [s for s in subnets if without_resolution(s) == without_resolution(end)]
        assert share - 0.08 < len(alike) / STEPS < share + 0.12  # what lies between may be an end as well
        assert {s["resolution"] for s in alike} == set(resnet_net.space["resolution"].choices)


def test_all_subnets_of_a_step_have_its_resolution(resnet_net: autotailor.SuperNet) -> None:
    steps = drawn(make("mixed", resnet_net, 3), 60)
    resolutions = [{s["resolution"] for s in step} for step in steps]
    assert all(len(found) == 1 for found in resolutions)
    assert set.union(*resolutions) == set(resnet_net.space["resolution"].choices)
    assert any(len(set(step)) == 3 for step in steps)


def test_a_space_without_resolutions_is_drawn_from_as_well() -> None:
    space = {**networks.SPACES["resnet"]}
    space.pop("resolution")
    net = autotailor.compile(networks.make("resnet"), space, name="resnet", resolution=32)
    (only,) = make("mixed", net, 1, largest=1, smallest=0).draw(0.0, np.random.default_rng(0))
    assert only == net.largest()


def test_macs_spread_the_subnets_between_evenly(resnet_net: autotailor.SuperNet) -> None:
    macs, largest = resnet_net.macs(), resnet_net.largest()
    whole = Modification("resolution", largest["resolution"])
    low, high = macs.predict(stack([resnet_net.smallest().transform(whole), largest]))

    def thirds(between: str) -> np.ndarray:
        """Shares of the SubNets at the full resolution in the thirds of its range of MACs."""
        strategy = make("mixed", resnet_net, 1, largest=0, smallest=0, between=between)
        found = [s for (s,) in drawn(strategy) if s["resolution"] == whole.choice]
        return np.histogram((macs.predict(stack(found)) - low) / (high - low), 3, (0, 1))[0] / len(found)

    assert np.abs(thirds("macs") - 1 / 3).max() < 0.1 < np.abs(thirds("distance") - 1 / 3).max()


def test_macs_are_asked_for_where_they_are_missing(resnet_net: autotailor.SuperNet) -> None:
    strategy = sampling.create("mixed", resnet_net.space, {}, 1, {"largest": 0, "smallest": 0, "between": "macs"})
    with pytest.raises(TrainingError, match="metric of MACs"):
        strategy.draw(0.0, np.random.default_rng(0))
