"""The standard error of a SubNet's latency, against its operators counted one by one."""

import math
from collections import Counter

import pytest

import autotailor
from acceptance import checks
from autotailor.ir.errors import GraphError
from autotailor.ir.metrics import uncertainty
from autotailor.ir.space.subnet import SubNet, stack
from conv_fusion import CONV_RULES


def counted(net: autotailor.SuperNet, subnet: SubNet) -> Counter[str]:
    """How often a SubNet runs each operator."""
    return Counter(f.id for place in net.places(CONV_RULES) if (f := place.feature(subnet)) is not None)


def test_a_row_that_a_subnet_reuses_is_wrong_as_often(any_net: autotailor.SuperNet) -> None:
    errors = {f.id: 0.01 * (i + 1) for i, f in enumerate(any_net.operators(fusion=CONV_RULES))}
    subnets = checks.subnets(any_net, 10)
    found = any_net.latency_error(errors, CONV_RULES).predict(stack(subnets))
    for subnet, error in zip(subnets, found, strict=True):
        counts = counted(any_net, subnet)
        assert error == pytest.approx(math.sqrt(sum((k * errors[id_]) ** 2 for id_, k in counts.items())))


def test_the_test_above_sees_operators_that_are_reused(resnet_net: autotailor.SuperNet) -> None:
    assert max(counted(resnet_net, resnet_net.largest()).values()) > 1


def test_subnets_in_pieces_have_the_errors_of_subnets_at_once(
    resnet_net: autotailor.SuperNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {f.id: 0.01 * (i + 1) for i, f in enumerate(resnet_net.operators(fusion=CONV_RULES))}
    subnets, metric = stack(checks.subnets(resnet_net, 10)), resnet_net.latency_error(errors, CONV_RULES)
    whole = metric.predict(subnets)
    monkeypatch.setattr(uncertainty, "ROWS", 3)
    assert metric.predict(subnets).tolist() == whole.tolist()


def test_an_operator_that_the_table_lacks_is_refused(resnet_net: autotailor.SuperNet) -> None:
    errors = {f.id: 0.01 for f in resnet_net.operators(fusion=CONV_RULES)}
    errors.popitem()
    with pytest.raises(GraphError, match="LUT lacks 1 of the"):
        resnet_net.latency_error(errors, CONV_RULES)
