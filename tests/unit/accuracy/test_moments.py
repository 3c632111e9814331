"""A network that arrives trained is prepared without training: statistics, moments, order, share of recalibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor import accuracy
from autotailor.accuracy.moments import SHARES, answers, divergence
from autotailor.data import DataSplits
from autotailor.ir.execution.batch_norm import normalisations

CONFIG = accuracy.MomentsConfig(images=32, batch_size=16)
CALIBRATION = accuracy.CalibrationConfig(images=32, batch_size=16)


def images(data: DataSplits) -> list[torch.Tensor]:
    return [batch for batch, _ in data.test.batches(20)]


def far_statistics(seed: int = 0) -> nn.Module:
    """A network whose statistics are those of other pictures."""
    network = networks.make("resnet", seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.mul_(torch.linspace(0.3, 4, len(module.running_var)))
    return network.eval()


@pytest.fixture(scope="module")
def given_net() -> autotailor.SuperNet:
    return autotailor.compile(far_statistics(), networks.SPACES["resnet"], name="given", resolution=32)


def test_the_network_stays_and_a_new_estimate_of_its_statistics_costs_nothing(
    given_net: autotailor.SuperNet, tiny: DataSplits
) -> None:
    net = accuracy.prepare(given_net, tiny, CONFIG, CALIBRATION).net
    wanted = answers(given_net.module(), given_net.largest(), images(tiny))
    found = answers(net.module(), net.largest(), images(tiny))
    assert torch.allclose(found, wanted, atol=1e-4 * float(wanted.abs().max()))
    anew = net.recalibrated(1.0)
    statistics = accuracy.calibrate(anew.module(), anew.largest(), tiny, CALIBRATION)
    again = answers(anew.module(), anew.largest(), images(tiny), statistics)
    before = accuracy.calibrate(given_net.module(), given_net.largest(), tiny, CALIBRATION)
    lost = answers(given_net.module(), given_net.largest(), images(tiny), before)
    assert divergence(again, wanted) < 0.1 * divergence(lost, wanted)


def test_the_share_with_the_least_divergence_is_taken(given_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    found = accuracy.prepare(given_net, tiny, CONFIG, CALIBRATION)
    assert tuple(found.divergences) == SHARES
    assert found.net.elastic.recalibrated == min(SHARES, key=lambda share: found.divergences[share])


def test_a_share_of_recalibration_lies_between_the_given_statistics_and_new_ones(
    given_net: autotailor.SuperNet, tiny: DataSplits
) -> None:
    def first(share: float) -> tuple[torch.Tensor, torch.Tensor]:
        net = given_net.recalibrated(share)
        statistics = accuracy.calibrate(net.module(), net.largest(), tiny, CALIBRATION)
        return statistics[normalisations(net.graph)[0].name]

    none, some, whole = (torch.stack(first(share)) for share in (0.0, 0.25, 1.0))
    assert torch.allclose(some, 0.75 * none + 0.25 * whole, rtol=1e-4, atol=1e-5)
    node = normalisations(given_net.graph)[0]
    assert torch.allclose(none[0], torch.from_numpy(given_net.graph.weights[node.inputs[3]]))


def test_without_images_a_network_stays_as_it_is(given_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    found = accuracy.prepare(given_net, tiny, replace(CONFIG, images=0), CALIBRATION)
    assert found.net is given_net
    assert found.divergences == {}


def test_networks_without_batch_norm_have_no_share_to_decide(tiny: DataSplits) -> None:
    net = autotailor.compile(networks.make("transformer"), networks.SPACES["transformer"], resolution=32)
    found = accuracy.prepare(net, tiny, CONFIG, CALIBRATION)
    assert found.divergences == {}
    assert found.net.elastic.moments is not None
    subnet = net.smallest()
    assert torch.isfinite(answers(found.net.module(), subnet, images(tiny))).all()


def test_the_divergence_is_that_of_the_distributions() -> None:
    rng = np.random.default_rng(0)
    said, wanted = (torch.from_numpy(rng.normal(size=(5, 4))) for _ in range(2))
    p, q = wanted.softmax(1), said.softmax(1)
    assert divergence(said, wanted) == pytest.approx(float((p * (p / q).log()).sum(1).mean()))
    assert divergence(wanted, wanted) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("bad", [{"images": 1}, {"images": -1}, {"ridge": 0.0}, {"ridge": "much"}, {"pictures": 3}])
def test_values_out_of_range_are_refused_with_their_key(bad: dict[str, object]) -> None:
    with pytest.raises(accuracy.AccuracyError, match=r"moments"):
        accuracy.MomentsConfig.from_section(bad)


def test_one_training_image_is_not_enough(given_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    with pytest.raises(accuracy.AccuracyError, match="at least 2"):
        accuracy.prepare(given_net, replace(tiny, train=tiny_data.TinyStream(1)), CONFIG, CALIBRATION)
