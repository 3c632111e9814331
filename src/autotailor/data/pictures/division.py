"""Division of pictures into parts: drawn from a seed, every class in proportion, equal files in the same part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.labels import UNKNOWN

DIVIDE = 3  # seed word


def divide(
    name: str,
    classes: Sequence[str],
    labels: Sequence[int],
    contents: Sequence[str],
    shares: Sequence[float],
    seed: int,
) -> list[npt.NDArray[np.int64]]:
    """Positions of the pictures of each part, ascending.

    A picture's part depends on the seed and on the contents of the pictures of its class, not on names or places.
    Files with the same content come into the same part. Where equal files lie in two classes, the class of the first
    file counts.

    Args:
        name: of the dataset, for messages.
        classes: names of the classes in the order of their labels; empty where the pictures have no labels.
        labels: of the pictures.
        contents: hashes of the pictures, one per label.
        shares: of the parts, positive numbers; the first part takes what rounding leaves.
        seed: of the order.

    Raises:
        DataError: a class has fewer different pictures than ``shares`` has parts.
    """
    home: dict[str, int] = {}
    for label, content in zip(labels, contents, strict=True):
        home.setdefault(content, label)
    of_class: dict[int, list[str]] = defaultdict(list)
    for content, label in home.items():
        of_class[label].append(content)
    part_of: dict[str, int] = {}
    for label in range(len(classes)) if classes else (UNKNOWN,):
        distinct = sorted(of_class[label])
        if len(distinct) < len(shares):
            what = f"class {classes[label]} has" if classes else "there are"
            raise DataError(
                f"data {name}: {what} {len(distinct)} different pictures, too few to divide them into {len(shares)} "
                f"parts; add pictures, or divide them yourself into train/, val/ and test/"
            )
        order = np.random.default_rng([seed, DIVIDE, max(label, 0)]).permutation(len(distinct))
        for part, positions in enumerate(_cut(order, shares)):
            part_of |= {distinct[position]: part for position in positions}
    parts = np.array([part_of[content] for content in contents], dtype=np.int64)
    return [np.flatnonzero(parts == part).astype(np.int64) for part in range(len(shares))]


def _cut(order: npt.NDArray[np.int64], shares: Sequence[float]) -> list[npt.NDArray[np.int64]]:
    """Cuts an order into consecutive pieces of at least one element, in proportion to the shares."""
    total = sum(shares)
    sizes = [max(1, round(len(order) * share / total)) for share in shares[1:]]
    while sum(sizes) >= len(order):  # rounding sizes up to 1 may leave nothing for the first part
        sizes[sizes.index(max(sizes))] -= 1
    return np.split(order, np.cumsum([len(order) - sum(sizes), *sizes[:-1]]))
