"""Sections of the configuration: what is read, what is refused by name, and what the schema says of it."""

import pickle
from dataclasses import field, replace
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import Section, descriptions, flatten
from autotailor.values import AboveZero, Bound, Flag, Natural, OneOf, Share, UnfitError


class SectionError(AutoTailorError):
    """The error that a section's owner chooses."""


class Teaching(Section, of="teaching", error=SectionError):
    """How the teacher teaches.

    Attributes:
        weight: of ``teacher`` labels: a share.
    """

    weight: Share = 0.5

    def __post_init__(self) -> None:
        if self.weight == 0.25:
            raise UnfitError("weight", "expected anything but a quarter")


class Loop(Section, of="training", error=SectionError, kw_only=True):
    """A training.

    Attributes:
        epochs, steps: so many of
            them.
        rate: learning rate.
    """

    epochs: Natural
    steps: Natural = 0
    rate: Annotated[float, Bound(gt=0, expected="a rate above 0")] = 0.1
    optimizer: Annotated[str, OneOf("sgd", "adam")] = "sgd"
    sizes: tuple[AboveZero, ...] = ()
    compiled: Flag = False
    name: str = ""
    limit: AboveZero | None = None


class Finetune(Loop, kw_only=True):
    """Another training."""

    epochs: Natural = 3
    teaching: Teaching = field(default_factory=Teaching)
    rounds: tuple[Teaching, ...] = ()


def test_lists_and_mappings_are_read_and_what_is_left_out_has_its_default() -> None:
    read = Finetune.from_section({"sizes": [1, 2.5], "teaching": {"weight": 1}, "rounds": [{"weight": 0}]})
    assert read == Finetune(sizes=(1, 2.5), teaching=Teaching(1), rounds=(Teaching(0),))
    assert hash(read) == hash(pickle.loads(pickle.dumps(read)))
    assert (Loop.rate, Finetune.epochs, replace(read, steps=4).steps) == (0.1, 3, 4)


def test_a_whole_number_stays_as_it_was_written() -> None:
    """A training that an earlier version began is found by its parameters as text."""
    assert repr(Teaching.from_section({"weight": 1})) == "Teaching(weight=1)"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([], "training: expected a mapping of parameters, not []"),
        ({"epoch": 2}, "training: unknown keys ['epoch']; known are ['compiled', 'epochs', 'limit', 'name', "),
        ({"epoch": 2, "rate": 0}, "Did you mean 'epochs'?"),
        ({7: 2}, "training: unknown keys ['7']; known are"),
        ({"teaching": {"wait": 1}}, "training.teaching: unknown keys ['wait']; known are ['weight']"),
        ({"teaching": 3}, "training.teaching: expected a mapping of parameters, not 3"),
        ({"teaching": {"weight": 0.25}}, "training.teaching.weight: expected anything but a quarter"),
        ({"rounds": [{}, {"weight": 2}]}, "training.rounds.1.weight: expected a number >= 0 and <= 1, not 2"),
        ({"epochs": -1}, "training.epochs: expected an integer >= 0, not -1"),
        ({"epochs": True}, "training.epochs: expected an integer >= 0, not True"),
        ({"epochs": 1.0}, "training.epochs: expected an integer >= 0, not 1.0"),
        ({"rate": float("nan")}, "training.rate: expected a rate above 0, not nan"),
        ({"limit": float("inf")}, "training.limit: expected a number > 0, not inf"),
        ({"limit": "1"}, "training.limit: expected a number > 0, not '1'"),
        ({"sizes": [1, False]}, "training.sizes.1: expected a number > 0, not False"),
        ({"sizes": 3}, "training.sizes: expected a list, not 3"),
        (
            {"optimizer": "adm"},
            "unknown optimizer 'adm'; known are sgd, adam. Did you mean 'adam'?",
        ),
        ({"compiled": 1}, "training.compiled: expected true or false, not 1"),
        ({"name": None}, "training.name: expected a text, not None"),
    ],
)
def test_other_sections_are_refused_by_name(section: Any, message: str) -> None:
    with pytest.raises(SectionError) as refused:
        Finetune.from_section(section)
    assert message in str(refused.value)


def test_an_object_is_called_by_the_section_that_a_user_wrote_and_else_by_its_class() -> None:
    with pytest.raises(SectionError, match=r"^mine: missing keys \['epochs'\]$"):
        Loop.from_section({}, where="mine")
    for _ in range(2):
        with pytest.raises(SectionError, match=r"^Loop\.epochs: expected"):
            Loop(epochs=-1)


def test_the_docstring_of_a_section_describes_its_keys_also_in_the_schema() -> None:
    told = "so many of them."
    assert descriptions(Finetune) == {"epochs": told, "steps": told, "rate": "learning rate."}
    schema = Finetune.schema()
    assert schema["$defs"]["Teaching"]["properties"]["weight"] == {
        "description": "of `teacher` labels: a share.",
        "default": 0.5,
        "minimum": 0,
        "maximum": 1,
        "type": "number",
    }
    assert schema["properties"]["optimizer"]["enum"] == ["sgd", "adam"]
    assert schema["properties"]["rate"] == {
        "description": "learning rate.",
        "default": 0.1,
        "exclusiveMinimum": 0,
        "type": "number",
    }


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
