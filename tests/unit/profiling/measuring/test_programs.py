"""Which programs measure operators: SubNets where they can, and those that judge predictions where only they can."""

import pytest

import autotailor
import networks
from autotailor.enumeration.cover import cover
from autotailor.ir.supernet import SuperNet
from autotailor.profiling import DeviceConfig
from autotailor.profiling.measuring.programs import InPlace
from autotailor.profiling.networks.validation import validation_subnets
from autotailor.profiling.runtimes import open_runtime

SMALL = {"resolution": [32, 24, 16]}


def programs(net: SuperNet, judged: int) -> tuple[int, int, int]:
    """Operators, SubNets that measure them, and replicas, where predictions are judged on so many SubNets."""
    runtime = open_runtime(DeviceConfig(name="host"))
    operators = {feature.id: feature for feature in net.operators(fusion=runtime.fusion)}
    made = InPlace(runtime, operators, net, validation_subnets(net.space, judged, 0))(list(operators), [])
    return len(operators), sum(bool(each.steps) for each in made), sum(not each.steps for each in made)


@pytest.mark.parametrize("space", [SMALL, {}])
def test_where_all_subnets_judge_predictions_operators_are_measured_in_them(space: dict[str, object]) -> None:
    """Replicas would measure a third more for the smallest SubNet here, beside the largest."""
    net = autotailor.compile(networks.make("resnet"), space, name="resnet", resolution=32)
    operators, subnets, replicas = programs(net, judged=20)
    assert operators > 10
    assert (subnets, replicas) == (3 if space else 1, 0)


def test_subnets_that_judge_predictions_are_left_alone_where_others_hold_all_operators(resnet_net: SuperNet) -> None:
    runtime = open_runtime(DeviceConfig(name="host"))
    operators = {feature.id: feature for feature in resnet_net.operators(fusion=runtime.fusion)}
    judged = validation_subnets(resnet_net.space, 20, 0)
    made = InPlace(runtime, operators, resnet_net, judged)(list(operators), [])
    keys = {each.key for each in made}
    assert keys == {subnet.id for subnet in cover(resnet_net, runtime.fusion, list(operators.values()), avoid=judged)}
    assert not keys & {subnet.id for subnet in judged}
