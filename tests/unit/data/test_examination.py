"""Pictures that cannot be used: all are found, and the first are listed."""

from __future__ import annotations

import pytest

from autotailor.data import DataError
from autotailor.data.examination import LISTED, listed, refusals, refuse


def test_every_picture_that_cannot_be_opened_is_found_in_order() -> None:
    opened = []

    def open_picture(index: int) -> int:
        opened.append(index)
        if index in (2, 5):
            raise DataError(f"picture {index} is empty")
        return index

    assert refusals("checking", 7, open_picture) == ["picture 2 is empty", "picture 5 is empty"]
    assert opened == list(range(7))


def test_another_error_than_a_refusal_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        refusals("checking", 1, lambda index: index // 0)


def test_the_first_lines_are_listed_and_the_others_counted() -> None:
    lines = [f"line {i}" for i in range(LISTED + 1)]
    assert listed([]) == ""
    assert listed(lines[:LISTED]).splitlines() == [f"  {line}" for line in lines[:LISTED]]
    assert listed(lines).splitlines()[-2:] == [f"  line {LISTED - 1}", "  and 1 more"]
    assert listed([*lines, *["more"] * 1000]).endswith("  and 1,001 more")


def test_the_name_of_a_file_may_hold_any_bytes() -> None:
    assert listed(["\udcff.jpg is empty"]) == "  \\udcff.jpg is empty"


def test_what_cannot_be_used_is_refused_with_its_reasons_and_the_remedy() -> None:
    refuse("mine", "0 of 7 pictures cannot be used", [])
    for more, place in (({}, " of the folder"), ({"place": ""}, "")):
        with pytest.raises(DataError) as error:
            refuse("mine", "2 of 7 pictures cannot be used", ["a.png is empty", "b.png is short"], **more)
        assert str(error.value) == (
            "data mine: 2 of 7 pictures cannot be used:\n  a.png is empty\n  b.png is short\n"
            f"Repair them or take them out{place}; nothing was trained yet"
        )
