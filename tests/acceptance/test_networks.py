"""Whole classifiers, compiled without a configuration: every form of a SubNet computes the same.

``benchmarks/networks.py`` runs the same checks, network after network, and prints a table.
"""

import pytest

from acceptance import checks, classifiers
from autotailor.ir.errors import GraphError

HALF = 0.5
SIGNAL = 0.01
RANDOM_SUBNETS = 20
MANY_SUBNETS = 200


def verify(source: str, side: int | None, count: int) -> None:
    model = classifiers.export(source, side)
    net = checks.compile_model(model)
    assert {v.kind for v in net.space} & checks.WIDTHS
    assert checks.smallest_share(net) <= classifiers.LARGE.get(source, HALF)
    assert checks.response(model, net.input_shape[-1]) > SIGNAL
    error, allowed = checks.check_largest(net, model)
    assert error < allowed
    checks.check_every_shape(net, MANY_SUBNETS)
    module = net.module()
    for subnet in checks.subnets(net, count):
        check = checks.check_subnet(net, module, subnet)
        assert check.passed, f"{subnet.to_json()}: {check}"


@pytest.mark.parametrize("source", sorted(classifiers.SMALL))
def test_every_form_of_a_subnet_computes_the_same(source: str) -> None:
    verify(source, classifiers.SMALL[source], count=3)


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("source", [*classifiers.ISSUE, *classifiers.FURTHER])
def test_every_form_of_a_subnet_computes_the_same_in_full(source: str) -> None:
    verify(source, None, RANDOM_SUBNETS)


@pytest.mark.sweep
@pytest.mark.parametrize("source", classifiers.REFUSED)
def test_what_cannot_be_executed_is_refused_with_the_reason(source: str) -> None:
    with pytest.raises(GraphError, match=classifiers.REFUSED[source]):
        checks.compile_model(classifiers.export(source, None)).module()
