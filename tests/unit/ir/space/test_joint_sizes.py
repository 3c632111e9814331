"""Joint sizes: derived variables against brute force over all joint choices."""

import itertools

import numpy as np
import pytest

from autotailor.ir.dimensions.dimension import Atom, Constant, Dimension, Sum, Window, product
from autotailor.ir.errors import SpaceError
from autotailor.ir.space import joint_sizes
from autotailor.ir.space.architecture import Architecture, Fixed, Scaled
from autotailor.ir.space.derived import entries
from autotailor.ir.space.subnet import canonical
from autotailor.ir.space.variable import Space, Variable

RESOLUTION = Atom("resolution", 32)
GROWTHS = tuple(Atom(f"growth{i}", 16) for i in range(6))
INNER = Atom("inner", 48)
RUNNING = Sum((Constant(24), *GROWTHS[:4]))
LONGER = Sum((RUNNING, *GROWTHS[4:]))
DIMENSIONS: dict[str, list[Dimension]] = {
    "one long sum": [RUNNING, Window(RESOLUTION, 1, 2)],
    "two that overlap": [RUNNING, LONGER, RESOLUTION],
    "a part that also stands alone": [RUNNING, GROWTHS[1], LONGER],
    "a ratio of a sum": [INNER, RUNNING],
    "a flattened sum": [product((RUNNING, RESOLUTION)), GROWTHS[5]],
    "parts that share a variable": [Sum((RUNNING, GROWTHS[0], INNER))],
}


def architecture() -> Architecture:
    variables = [Variable("resolution", "resolution", (16, 32), 1)]
    variables += [Variable(f"{a.name}.width", "width", (0.25, 0.5, 1.0), 2) for a in GROWTHS]
    variables += [Variable("inner.expand_ratio", "expand_ratio", (0.25, 0.5), 1)]
    rules = {RESOLUTION: Fixed("resolution"), INNER: Scaled("inner.expand_ratio", RUNNING, 4, 1, 0.5)}
    return Architecture(
        Space(tuple(variables)), {**rules, **{a: Scaled(f"{a.name}.width", None, 4, 1, 1.0) for a in GROWTHS}}
    )


@pytest.mark.parametrize("name", DIMENSIONS)
def test_joint_sizes_are_those_of_brute_force(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_sizes, "TABLE_LIMIT", 10)
    net, dimensions = architecture(), DIMENSIONS[name]
    found = joint_sizes.joint_sizes(net, dimensions)
    assert found.derived is not None
    rows = np.array(list(itertools.product(*(range(len(v.choices)) for v in net.space))))
    rows = canonical(net.space, rows[:: 1 if len(rows) < 5000 else 2])
    at = found.rows[entries(found.variables, found.derived, net.space, rows)]
    seen = set()
    for row, number in zip(rows, at, strict=True):
        sizes = net.sizes({v.name: v.choices[i] for v, i in zip(net.space, row, strict=True)})
        expected = [d.size(sizes) for d in dimensions]
        assert found.sizes[number].tolist() == expected
        seen.add(tuple(expected))
    assert seen == {tuple(sizes) for sizes in found.sizes.tolist()}
    assert len(seen) == len(found.sizes)


def test_few_variables_need_no_sums() -> None:
    found = joint_sizes.joint_sizes(architecture(), [RUNNING, RESOLUTION])
    assert found.derived is None
    assert found.rows.shape == (2, 3, 3, 3, 3)


def test_what_is_no_sum_is_refused_where_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_sizes, "TABLE_LIMIT", 10)
    monkeypatch.setattr(joint_sizes, "HARD_LIMIT", 100)
    with pytest.raises(SpaceError, match=r"6 variables jointly .* 729 choices"):
        joint_sizes.joint_sizes(architecture(), GROWTHS)


def test_many_sums_of_wide_layers_are_told_apart() -> None:
    """The product of the ranges of seven sums does not fit 64 bits."""
    groups = [tuple(Atom(f"layer{group}.{i}", 256) for i in range(3)) for group in range(6)]
    atoms = [atom for group in groups for atom in group]
    space = Space(tuple(Variable(f"{atom.name}.width", "width", (0.5, 1.0), 1) for atom in atoms))
    net = Architecture(space, {atom: Scaled(f"{atom.name}.width", None, 8, 1, 1.0) for atom in atoms})
    dimensions: list[Dimension] = [*(Sum(group) for group in groups), Sum(tuple(atoms))]
    found = joint_sizes.joint_sizes(net, dimensions)
    assert found.derived is not None
    rows = np.random.default_rng(0).integers(0, 2, (40, len(atoms)))
    at = found.rows[entries(found.variables, found.derived, space, rows)]
    for row, number in zip(rows, at, strict=True):
        sizes = net.sizes({v.name: v.choices[i] for v, i in zip(space, row, strict=True)})
        assert found.sizes[number].tolist() == [dimension.size(sizes) for dimension in dimensions]
