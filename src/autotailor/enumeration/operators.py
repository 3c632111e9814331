"""The distinct fused operators that any SubNet can contain (paper, section 4.2.1), deduced without running a SubNet."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.supernet import SuperNet

COLUMNS = ("id", "kind", "feature", "places")


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
