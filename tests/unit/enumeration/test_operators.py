"""The table of unique operators."""

from pathlib import Path

import pytest

import autotailor
from autotailor.enumeration import enumerate_operators, read_operators, write_operators
from autotailor.enumeration.operators import EnumerationError
from autotailor.ir.fusion.rules import FusionRules

RULES = FusionRules("test", folds=frozenset({("Conv", "BatchNormalization")}), free=frozenset({"Flatten"}))


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
