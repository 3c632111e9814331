"""SubNets that together hold every operator."""

import random
from pathlib import Path

import pytest

import autotailor
import networks
from autotailor.enumeration import enumerate_operators, read_operators, write_operators
from autotailor.enumeration.cover import EnumerationError, cover
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION

RULES = FusionRules("test", folds=frozenset({("Conv", "BatchNormalization")}), free=frozenset({"Flatten"}))


def held(net: autotailor.SuperNet, subnets: tuple[autotailor.SubNet, ...]) -> set[str]:
    return {feature.id for subnet in subnets for feature in net.operators(subnet, NCNN_FUSION)}


def test_every_operator_is_held_by_few_subnets(any_net: autotailor.SuperNet) -> None:
    operators = any_net.operators(fusion=NCNN_FUSION)
    chosen = cover(any_net, NCNN_FUSION)
    assert held(any_net, chosen) == {feature.id for feature in operators}
    assert len(set(chosen)) == len(chosen) < len(operators)
    assert chosen == cover(any_net, NCNN_FUSION)


def test_some_operators_are_held_without_the_subnets_to_avoid(resnet_net: autotailor.SuperNet) -> None:
    rng = random.Random(0)
    judged = [resnet_net.sample(rng) for _ in range(4)]
    wanted = [feature for subnet in judged for feature in resnet_net.operators(subnet, NCNN_FUSION)]
    chosen = cover(resnet_net, NCNN_FUSION, wanted, avoid=judged)
    assert not set(chosen) & set(judged)
    assert {feature.id for feature in wanted} <= held(resnet_net, chosen)
    assert len(chosen) <= len(cover(resnet_net, NCNN_FUSION))


def test_what_holds_nothing_new_is_made_small(resnet_net: autotailor.SuperNet) -> None:
    rng = random.Random(0)
    chosen = cover(resnet_net, NCNN_FUSION)
    drawn = [resnet_net.sample(rng) for _ in range(50)]
    rare = chosen[len(chosen) // 2 :]
    work = [resnet_net.macs().predict([subnet.indices for subnet in some]).mean() for some in (rare, drawn)]
    assert work[0] < 0.8 * work[1]


def test_operators_named_first_are_held_earlier(resnet_net: autotailor.SuperNet) -> None:
    operators = resnet_net.operators(fusion=NCNN_FUSION)
    last = operators[-len(operators) // 3 :]

    def waiting(wanted: tuple[OperatorFeature, ...]) -> int:
        held_by = [held(resnet_net, (subnet,)) for subnet in cover(resnet_net, NCNN_FUSION, wanted)]
        return sum(next(i for i, ids in enumerate(held_by) if feature.id in ids) for feature in last)

    assert waiting(operators[::-1]) < waiting(operators)


def test_a_network_that_cannot_change_holds_its_operators_itself() -> None:
    net = autotailor.compile(networks.make("resnet"), {}, name="fixed", resolution=32)
    assert not len(net.space)
    assert cover(net, NCNN_FUSION) == (net.largest(),)
    assert cover(net, NCNN_FUSION, avoid=[net.largest()]) == ()


def test_round_trip(any_net: autotailor.SuperNet, tmp_path: Path) -> None:
    operators = enumerate_operators(any_net, RULES)
    write_operators(tmp_path / "operators.csv", operators)
    assert read_operators(tmp_path / "operators.csv") == operators
    assert {o.feature for o in operators} == set(any_net.operators(fusion=RULES))
    assert len({o.feature.id for o in operators}) == len(operators)


def test_places_are_counted(resnet_net: autotailor.SuperNet) -> None:
    operators = enumerate_operators(resnet_net, RULES)
    places = resnet_net.places(RULES)
    for operator in operators[:10]:
        assert operator.places == sum(operator.feature in set(p.features.ravel()) for p in places)
    assert operators[0].places > 1


def test_damaged_tables_are_refused(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    path = tmp_path / "operators.csv"
    with pytest.raises(EnumerationError, match=r"operators\.csv"):
        read_operators(path)
    write_operators(path, enumerate_operators(resnet_net, RULES))
    path.write_text(path.read_text().replace('""strides"":[2,2]', '""strides"":[1,1]', 1))
    with pytest.raises(EnumerationError, match="id of its feature"):
        read_operators(path)


def test_an_operator_that_the_space_does_not_have_is_left_out(resnet_net: autotailor.SuperNet) -> None:
    own, strange = (
        enumerate_operators(resnet_net, NCNN_FUSION)[0].feature,
        OperatorFeature("Relu", ((1, 7),), ((1, 7),)),
    )
    held = cover(resnet_net, NCNN_FUSION, [strange, own])
    assert [own in resnet_net.operators(subnet, NCNN_FUSION) for subnet in held] == [True]
