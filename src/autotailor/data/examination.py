"""Pictures that cannot be used: how they are found one by one, and how a message lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autotailor.data.errors import DataError
from autotailor.data.progress import progress

LISTED = 10


def refusals(title: str, count: int, opened: Callable[[int], Any]) -> list[str]:
    """The reasons why pictures cannot be used, in the order of the pictures.

    Args:
        title: of the progress.
        count: number of the pictures.
        opened: opens a picture by its number, or raises DataError with the reason.
    """
    reasons = []
    with progress(title, count) as advance:
        for index in range(count):
            try:
                opened(index)
            except DataError as error:
                reasons.append(str(error))
            advance()
    return reasons


def refuse(name: str, what: str, wrong: Sequence[str], place: str = " of the folder") -> None:
    """Raises DataError where something cannot be used.

    Args:
        name: of the data, and what else the message begins with.
        what: cannot be used.
        wrong: a line for each reason; nothing is refused without any.
        place: that they may be taken out of.
    """
    if wrong:
        raise DataError(
            f"data {name}: {what}:\n{listed(wrong)}\nRepair them or take them out{place}; nothing was trained yet"
        )


def listed(lines: Sequence[str]) -> str:
    """The first ``LISTED`` lines, indented, and the number of the others; "" without lines.

    Bytes that are not UTF-8 are escaped, because the name of a file may hold any bytes.
    """
    lines = [line.encode("utf-8", "backslashreplace").decode() for line in lines]
    more = [f"and {len(lines) - LISTED:,} more"] if len(lines) > LISTED else []
    return "\n".join(f"  {line}" for line in [*lines[:LISTED], *more])
