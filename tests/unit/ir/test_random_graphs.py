"""Random classifiers and random assignments: every form of every SubNet says the same."""

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import autotailor
from acceptance import checks
from atoms import every_atom, varied
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.proposal.legality import fitting, needs_of
from unit.ir.strategies import models

FUSION = FusionRules(
    "conv",
    folds=frozenset({("Conv", "BatchNormalization")}),
    fuses=frozenset({("Conv", "Relu"), ("Conv", "HardSwish"), ("Add", "Relu")}),
    free=frozenset({"Flatten", "Reshape"}),
)
MANY = 400
MOST_SUBNETS = 200
QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def few(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=QUIET)


def agree(net: autotailor.SuperNet, seed: int, count: int = 3) -> None:
    """Smallest and random SubNets."""
    module = net.module()
    for subnet in checks.subnets(net, count, seed):
        check = checks.check_subnet(net, module, subnet)
        assert check.passed, (subnet.to_json(), check)


def legal(net: autotailor.SuperNet) -> autotailor.SuperNet:
    """The same without choices that some window does not fit into."""
    return varied(net, fitting(net.elastic.architecture, needs_of(net.elastic))[0])


def each_atom_on_its_own(model: onnx.ModelProto, seed: int) -> None:
    net = legal(every_atom(model, smallest_image=6))
    assert checks.check_largest(net, model)[0] < checks.TOLERANCE
    agree(net, seed)


def proposed_space(model: onnx.ModelProto, seed: int) -> None:
    net = checks.compile_model(model)
    agree(net, seed)
    metrics(net, seed)


def metrics(net: autotailor.SuperNet, seed: int) -> None:
    """Predicted MACs and parameters against those of the sliced networks alone."""
    macs, parameters = net.macs(), net.parameters()
    for subnet in checks.subnets(net, 2, seed):
        alone = autotailor.SuperNet.of(net.slice(subnet), {})
        for whole, part in ((macs, alone.macs()), (parameters, alone.parameters())):
            expected = part.predict(alone.largest().to_array())[0]
            assert whole.predict(subnet.to_array())[0] == pytest.approx(expected), whole.name


def unique_operators(model: onnx.ModelProto) -> None:
    """Against brute force: what the sliced graphs of all SubNets hold."""
    net = legal(every_atom(model, smallest_image=12, halves=True))
    if net.space.num_distinct > MOST_SUBNETS:
        return
    seen = set()
    for index in np.ndindex(*(len(v.choices) for v in net.space)):
        alone = autotailor.SuperNet.of(net.slice(autotailor.SubNet(net.space, index)), {})
        seen.update(alone.operators(fusion=FUSION))
    assert seen == set(net.operators(fusion=FUSION))


SEEDS = st.integers(0, 9)


@few(12)
@given(models(), SEEDS)
def test_forms_agree_when_each_atom_is_on_its_own(model: onnx.ModelProto, seed: int) -> None:
    each_atom_on_its_own(model, seed)


@few(6)
@given(models(most=6), SEEDS)
def test_forms_agree_in_the_proposed_space(model: onnx.ModelProto, seed: int) -> None:
    proposed_space(model, seed)


@few(6)
@given(models(most=2))
def test_operators_are_those_of_all_subnets(model: onnx.ModelProto) -> None:
    unique_operators(model)


@few(40)
@given(models(most=6), SEEDS)
def test_every_subnet_of_a_proposed_space_has_shapes(model: onnx.ModelProto, seed: int) -> None:
    checks.check_every_shape(checks.compile_model(model), 20, seed)


@pytest.mark.sweep
@few(MANY)
@given(models(most=8), SEEDS)
def test_two_hundred_subnets_of_many_proposed_spaces_have_shapes(model: onnx.ModelProto, seed: int) -> None:
    checks.check_every_shape(checks.compile_model(model), 200, seed)


@pytest.mark.sweep
@few(MANY)
@given(models(most=6), SEEDS)
def test_many_forms_agree_when_each_atom_is_on_its_own(model: onnx.ModelProto, seed: int) -> None:
    each_atom_on_its_own(model, seed)


@pytest.mark.sweep
@few(MANY)
@given(models(most=8), SEEDS)
def test_many_forms_agree_in_the_proposed_space(model: onnx.ModelProto, seed: int) -> None:
    proposed_space(model, seed)


@pytest.mark.sweep
@few(MANY)
@given(models(most=4))
def test_many_operators_are_those_of_all_subnets(model: onnx.ModelProto) -> None:
    unique_operators(model)
