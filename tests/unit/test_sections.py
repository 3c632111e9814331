"""Sections of the configuration: what is read, and what is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import check_integers, check_numbers, check_texts, flatten, place, read_section


class SectionError(AutoTailorError):
    """The error that a section's owner chooses."""


@dataclass(frozen=True)
class Config:
    epochs: int
    rate: float = 0.1
    sizes: tuple[int, ...] = field(default_factory=tuple)


def test_lists_become_tuples_and_what_is_left_out_has_its_default() -> None:
    read = read_section(Config, {"epochs": 3, "sizes": [1, 2]}, "training", SectionError)
    assert read == Config(3, 0.1, (1, 2))
    assert hash(read)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([], r"training: expected a mapping of parameters, not \[\]"),
        ({"epochs": 1, "epoch": 2}, r"training: unknown keys \['epoch'\]; known are \['epochs', 'rate', 'sizes'\]"),
        ({"epochs": 1, 7: 2}, r"unknown keys \['7'\]"),
        ({"rate": 1.0}, r"training: missing keys \['epochs'\]"),
    ],
)
def test_other_sections_are_refused_by_name(section: Any, message: str) -> None:
    with pytest.raises(SectionError, match=message):
        read_section(Config, section, "training", SectionError)


@dataclass(frozen=True)
class Placed:
    """Says in its error how it is called, and may make other objects while it is read."""

    depth: int
    inner: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.inner:
            read_section(Placed, {"depth": 1}, "outer.inner", SectionError)
            assert place(Config(1)) == "Config"
        if self.depth < 1:
            raise SectionError(f"{place(self)}.depth")


def test_an_object_is_called_by_the_section_that_a_user_wrote_and_else_by_its_class() -> None:
    for inner in ([], ["read"]):
        with pytest.raises(SectionError, match=r"^outer\.depth$"):
            read_section(Placed, {"depth": 0, "inner": inner}, "outer", SectionError)
        with pytest.raises(SectionError, match=r"^Placed\.depth$"):
            Placed(0, tuple(inner))


@pytest.mark.parametrize("value", [1, None, True, ("a",)])
def test_other_things_than_texts_are_refused(value: Any) -> None:
    with pytest.raises(SectionError, match=r"data\.epochs: expected a text, not "):
        check_texts(Config(value), ["epochs"], "data", SectionError)
    check_texts(Config("a"), ["epochs"], "data", SectionError)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, True, 1.0, "1", None])
def test_integers_below_their_bound_and_other_things_are_refused(value: Any) -> None:
    with pytest.raises(SectionError, match=r"training\.epochs: expected an integer >= 1"):
        check_integers(Config(value), {"epochs": 1}, "training", SectionError)
    check_integers(Config(1), {"epochs": 1}, "training", SectionError)


@pytest.mark.parametrize("value", [-0.1, True, float("nan"), float("inf"), "1"])
def test_numbers_below_their_bound_and_other_things_are_refused(value: Any) -> None:
    with pytest.raises(SectionError, match=r"training\.rate: expected a number >= 0"):
        check_numbers(Config(1, value), {"rate": 0}, "training", SectionError)
    check_numbers(Config(1, 0), {"rate": 0}, "training", SectionError)


NAMES = st.text("abc", min_size=1, max_size=3)


@given(st.recursive(st.integers(), lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3), max_leaves=9))
def test_a_flat_section_has_every_value_at_its_dotted_path(section: Any) -> None:
    section = section if isinstance(section, dict) else {"a": section}
    for path, value in flatten(section).items():
        found = section
        for name in path.split("."):
            found = found[name]
        assert found == value


def test_flattening_loses_nothing() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [2]}}, "e": None}) == {"a.b": 1, "a.c.d": [2], "e": None}
