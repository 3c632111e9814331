"""From choices to sizes: rounding as timm rounds, ratios of widths that change themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timm.layers import make_divisible

from autotailor.ir.dimensions.dimension import Atom, Constant, Product, Sum
from autotailor.ir.errors import IllegalSubNetError
from autotailor.ir.space.architecture import Architecture, Fixed, Scaled, round_width
from autotailor.ir.space.variable import Space, Variable

IMAGE, WIDTH, INNER, GROUPS = Atom("image", 32), Atom("width", 64), Atom("inner", 16), Atom("groups", 8)
SPACE = Space(
    (
        Variable("resolution", "resolution", (16, 32), 1),
        Variable("width", "width", (0.3, 0.5, 1.0), 2),
        Variable("ratio", "expand_ratio", (0.125, 0.25), 1),
        Variable("groups", "width", (0.4, 0.7, 1.0), 2),
    )
)
ARCHITECTURE = Architecture(
    SPACE,
    {
        IMAGE: Fixed("resolution"),
        WIDTH: Scaled("width", None, 8, 1, 1.0),
        INNER: Scaled("ratio", WIDTH, 4, 1, 0.25),
        GROUPS: Scaled("groups", None, 8, 6, 1.0),
    },
)


@given(st.floats(0.01, 8), st.integers(1, 64))
def test_widths_are_rounded_as_timm_rounds_them(divisors: float, divisor: int) -> None:
    value = divisors * divisor
    assert round_width(value, divisor) == make_divisible(value, divisor, round_limit=0.9)


def sizes_of(**choices: float) -> dict[Atom, int]:
    assignment = {v.name: v.choices[v.default] for v in SPACE} | choices
    size = ARCHITECTURE.sizes(assignment)
    return {atom: size(atom) for atom in (IMAGE, WIDTH, INNER, GROUPS, Atom("other", 5))}


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, (32, 64, 16, 8, 5)),
        ({"resolution": 16}, (16, 64, 16, 8, 5)),
        ({"width": 0.3}, (32, 24, 8, 8, 5)),  # 19.2 rounds to 16, which loses more than a tenth; 0.25 of 24 is 6, to 4
        ({"width": 0.5, "ratio": 0.125}, (32, 32, 4, 8, 5)),
        ({"ratio": 0.125}, (32, 64, 8, 8, 5)),
        ({"groups": 0.4}, (32, 64, 16, 4, 5)),  # 19.2 of 48 channels, to 24, the multiple of 8 and of groups of 6
        ({"groups": 0.7}, (32, 64, 16, 8, 5)),  # 33.6 channels: 24 loses more than a tenth; 32 are no groups of 6
    ],
)
def test_sizes_follow_the_choices(choices: dict[str, float], expected: tuple[int, ...]) -> None:
    assert tuple(sizes_of(**choices).values()) == expected


def test_a_size_depends_on_its_variable_and_on_those_of_its_base() -> None:
    assert ARCHITECTURE.variables(INNER) == ("width", "ratio")
    assert ARCHITECTURE.variables(Product((IMAGE, IMAGE)), Sum((GROUPS, Constant(3)))) == ("resolution", "groups")
    assert ARCHITECTURE.variables(Constant(7), Atom("other", 5)) == ()


def test_a_base_can_be_replaced() -> None:
    other = ARCHITECTURE.substituted({WIDTH: Constant(32)})
    assert other.sizes({"ratio": 0.125, "width": 1.0})(INNER) == 4
    assert other.variables(INNER) == ("ratio",)


def test_what_vanishes_is_refused_with_its_owner() -> None:
    with pytest.raises(IllegalSubNetError, match="tensor t: nothing is left of a dimension of 32; it became 0"):
        ARCHITECTURE.active(IMAGE, lambda _: 0, "tensor t")
    assert ARCHITECTURE.active(IMAGE, lambda _: 1, "tensor t") == 1
