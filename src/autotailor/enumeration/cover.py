"""The distinct operators of a space, deduced (paper, section 4.2.1), and SubNets that together hold all of them.

Runtimes that time operators inside whole networks run these SubNets. The search is greedy: while an operator is
missing, a SubNet with this operator is drawn at random. One variable of the SubNet at a time is then changed, as long
as a change adds operators that no SubNet holds yet, or keeps their number with fewer MACs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.places import Place
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.metrics.sums import operator_macs
from autotailor.ir.space.derived import entries
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import IntArray, SubNet, canonical
from autotailor.ir.space.variable import Space
from autotailor.ir.supernet import SuperNet

DRAWS = 24
"""SubNets drawn for each missing operator; the one that adds the most operators is improved."""
STEPS = 40

COLUMNS = ("id", "kind", "feature", "places")


def cover(
    net: SuperNet,
    fusion: FusionRules,
    operators: Iterable[OperatorFeature] | None = None,
    *,
    avoid: Collection[SubNet] = (),
    seed: int = 0,
) -> tuple[SubNet, ...]:
    """SubNets that together hold the operators; the same seed gives the same SubNets.

    An operator whose sizes are sums over many variables (the widths of a DenseNet) is only found by chance, and may be
    missing from the result.

    Args:
        net: the SuperNet.
        fusion: the runtime's rules.
        operators: to hold, the most important first; all operators of the space when None. Those that the space does
            not have, such as those of early exits, are left out.
        avoid: SubNets that must not be in the result, because predictions are validated on them.
        seed: of the draws.
    """
    if not len(net.space):  # nothing can be drawn where the network is the only SubNet
        return tuple(subnet for subnet in (net.largest(),) if subnet not in avoid)
    places = net.places(fusion)
    space = net.operators(fusion=fusion)
    ids = {feature.id: i for i, feature in enumerate(space)}
    order = [*ids.values()] if operators is None else [ids[each.id] for each in operators if each.id in ids]
    missing = np.zeros(len(ids) + 1, dtype=bool)  # the last one stands for a place that was removed
    missing[order] = True
    macs_m = np.array([*map(operator_macs, space), 0.0])
    held = _Held(net.space, places, ids, macs_m, [subnet.indices for subnet in avoid])
    rng = np.random.default_rng(seed)
    chosen: list[SubNet] = []
    for operator in order:
        if not missing[operator]:
            continue
        rows = held.draw(operator, rng)
        gains = held.gain(rows, missing, operator)
        if gains.max() > 0:
            best = held.improve(rows[np.argmax(gains)], missing, operator, rng)
            missing[held.operators(best[None])[0]] = False
            chosen.append(SubNet(net.space, tuple(best)))
    return tuple(chosen)


class _Held:
    """Tells which operators SubNets hold; operators are given by their number."""

    def __init__(
        self,
        space: Space,
        places: tuple[Place, ...],
        ids: dict[str, int],
        macs_m: npt.NDArray[np.float64],
        avoid: Sequence[Sequence[int]],
    ) -> None:
        self.space, self.places, self.removed, self.macs_m = space, places, len(ids), macs_m
        self.numbers = [np.array([ids[feature.id] for feature in place.operators]) for place in places]
        self.sizes = np.array([len(variable.choices) for variable in space])
        self.avoid = np.array(avoid, dtype=np.int64).reshape(-1, len(self.sizes))

    def operators(self, rows: IntArray) -> IntArray:
        """Operator of each place of canonical choice indices ``[n, variables]``: ``[n, places]``."""
        held = np.full((len(rows), len(self.places)), self.removed)
        for column, (place, numbers) in enumerate(zip(self.places, self.numbers, strict=True)):
            index = entries(place.variables, place.derived, self.space, rows)
            number = numbers[place.index[index]]
            is_open = True if place.gate is None else place.gate.is_open(self.space.positions, rows)
            held[:, column] = np.where(is_open, number, self.removed)
        return held

    def gain(self, rows: IntArray, missing: npt.NDArray[np.bool_], operator: int) -> npt.NDArray[np.float64]:
        """Number of missing operators that each SubNet holds, minus a penalty below 1 for its MACs: ``[n]``.

        SubNets without the wanted operator, and SubNets to avoid, have a gain of -1.
        """
        numbers = np.sort(self.operators(rows), axis=1)
        first = np.diff(numbers, axis=1, prepend=-1) != 0
        macs_m = self.macs_m[numbers].sum(axis=1)
        gains = (missing[numbers] & first).sum(axis=1) - macs_m / (macs_m + self.macs_m.sum())
        avoided = (rows[:, None] == self.avoid).all(axis=2).any(axis=1)
        return np.asarray(np.where((numbers == operator).any(axis=1) & ~avoided, gains, -1.0))

    def draw(self, operator: int, rng: np.random.Generator) -> IntArray:
        """Random SubNets that hold an operator, unless sums over many variables decide about the operator."""
        rows = rng.integers(0, self.sizes, size=(DRAWS, len(self.sizes)))
        options = [
            (place, cell)
            for place, numbers in zip(self.places, self.numbers, strict=True)
            for number in np.flatnonzero(numbers == operator)
            for cell in np.argwhere(place.index == number)
        ]
        for row in rows:
            place, cell = options[rng.integers(len(options))]
            for name, choice in zip(place.variables, cell, strict=False):  # derived sums stay random
                self._set(row, name, int(choice), rng)
            if place.gate is not None:
                self._open(row, place.gate, rng)
        return canonical(self.space, rows)

    def _set(self, row: IntArray, name: str, choice: int, rng: np.random.Generator) -> None:
        """Sets a variable, and opens the variable's gate."""
        row[self.space.positions[name]] = choice
        gate = self.space[name].gate
        if gate is not None:
            self._open(row, gate, rng)

    def _open(self, row: IntArray, gate: Gate, rng: np.random.Generator) -> None:
        """Opens a gate that is closed, by one of the joint choices that open it."""
        if not gate.is_open(self.space.positions, row[None])[0]:
            opening = gate.openings[rng.integers(len(gate.openings))]
            row[[self.space.positions[name] for name in gate.variables]] = opening

    def improve(
        self, row: IntArray, missing: npt.NDArray[np.bool_], operator: int, rng: np.random.Generator
    ) -> IntArray:
        """Changes one variable at a time, while a change adds missing operators or reduces MACs."""
        best = self.gain(row[None], missing, operator)[0]
        for _ in range(STEPS):
            rows = np.repeat(row[None], self.sizes.sum(), axis=0)
            columns = np.repeat(np.arange(len(self.sizes)), self.sizes)
            rows[np.arange(len(rows)), columns] = np.concatenate([np.arange(size) for size in self.sizes])
            rows = canonical(self.space, rows)
            gains = self.gain(rows, missing, operator)
            if gains.max() <= best:
                break
            row, best = rows[rng.choice(np.flatnonzero(gains == gains.max()))], gains.max()
        return row


class EnumerationError(AutoTailorError):
    """A table of operators cannot be read."""


@dataclass(frozen=True)
class UniqueOperator:
    """One row of ``operators.csv``.

    Attributes:
        feature: the fused operator.
        places: number of places in the network that can hold the operator.
    """

    feature: OperatorFeature
    places: int


def enumerate_operators(net: SuperNet, fusion: FusionRules) -> tuple[UniqueOperator, ...]:
    """All unique fused operators of a space, the most used first."""
    counts: Counter[OperatorFeature] = Counter()
    for place in net.places(fusion):
        counts.update(place.operators)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0].kind, item[0].to_json()))
    return tuple(UniqueOperator(feature, places) for feature, places in ordered)


def write_operators(path: Path, operators: Sequence[UniqueOperator]) -> None:
    """Writes ``operators.csv``."""
    import pandas as pd

    rows = [(o.feature.id, o.feature.kind, o.feature.to_json(), o.places) for o in operators]
    pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(path, index=False)


def read_operators(path: Path) -> tuple[UniqueOperator, ...]:
    """Reads ``operators.csv``.

    Raises:
        EnumerationError: the file is missing or is no such table, or a row's id does not match its feature.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path)
        operators = tuple(
            UniqueOperator(OperatorFeature.from_json(f), int(n))
            for f, n in zip(table.feature, table.places, strict=True)
        )
        damaged = [row for row, o in zip(table.id, operators, strict=True) if row != o.feature.id]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise EnumerationError(f"{path} is no table of operators ({error}); run the rule enumerate again") from error
    if damaged:
        raise EnumerationError(f"{path}: operator {damaged[0]} does not have the id of its feature; enumerate again")
    return operators
