"""What a key of the configuration takes: numbers within bounds, switches, and names out of a list.

A section (``sections.Section``) names these in the annotations of its fields. Pydantic checks them, and the schema for
editors and the reference are made of them. A whole number that stands where any number may stand stays as it was
written, because a training is recognised by its parameters as text.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Strict
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core import core_schema as cs

BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
UNFIT, UNKNOWN = "unfit", "unknown"
"""Types of pydantic's errors whose message says what is expected, and which names are known."""


@dataclass(frozen=True)
class Bound:
    """Bounds of an ``int`` or a ``float`` in ``Annotated``; a ``float`` must be finite, too.

    Attributes:
        ge, gt, le, lt: at least, above, at most, below.
        expected: what messages say is expected, where the bounds alone say too little.
        limitless: whether infinity is allowed, which sets no limit.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    expected: str = ""
    limitless: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        bounds: dict[str, Any] = {key: value for key in BOUNDS if (value := getattr(self, key)) is not None}
        said = " and ".join(f"{BOUNDS[key]} {bounds[key]:g}" for key in bounds)
        if source is int:
            return _told(cs.int_schema(strict=True, **bounds), self.expected or f"an integer {said}")
        number = cs.float_schema(strict=True, allow_inf_nan=self.limitless, **bounds)
        kept = cs.no_info_wrap_validator_function(_as_written, number)
        return _told(kept, self.expected or f"a number {said}".strip())


class OneOf:
    """Names of which a ``str`` in ``Annotated`` is one."""

    def __init__(self, *names: str, listed: Callable[[], Sequence[str]] | None = None, pattern: str = "") -> None:
        """The names, or the function of a registry that lists them; with a pattern, they only say what it matches."""
        self._listed, self._pattern = listed or (lambda: names), re.compile(pattern) if pattern else None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        names = list(self._listed())
        shown = cs.str_schema(pattern=self._pattern.pattern) if self._pattern else cs.literal_schema(names)
        return cs.no_info_plain_validator_function(self._check, json_schema_input_schema=shown)

    def _check(self, value: Any) -> str:
        names = self._listed()
        if not isinstance(value, str) or not (self._pattern.search(value) if self._pattern else value in names):
            raise PydanticCustomError(UNKNOWN, "{names}", {"names": ", ".join(names)})
        return value


def _told(inner: CoreSchema, message: str) -> CoreSchema:
    return cs.custom_error_schema(inner, custom_error_type=UNFIT, custom_error_message=message)


def _as_written(value: Any, check: Callable[[Any], float]) -> Any:
    check(value)
    return value


@dataclass(frozen=True)
class Told:
    """One sentence, in ``Annotated``, for all that is wrong with a value, such as a list.

    Attributes:
        expected: what messages say is expected.
        holds: what must hold of a value whose parts are right.
    """

    expected: str
    holds: Callable[[Any], bool] = lambda value: True

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return _told(cs.no_info_after_validator_function(self._checked, handler(source)), self.expected)

    def _checked(self, value: Any) -> Any:
        if not self.holds(value):
            raise ValueError
        return value


class UnfitError(ValueError):
    """A value that does not go together with others of its section, raised in ``__post_init__``."""

    def __init__(self, key: str, message: str) -> None:
        """The key, "" for the section itself, and what is expected of it."""
        super().__init__(message)
        self.key = key


Flag = Annotated[bool, Strict()]
Natural = Annotated[int, Bound(ge=0)]
Positive = Annotated[int, Bound(ge=1)]
Number = Annotated[float, Bound()]
NotNegative = Annotated[float, Bound(ge=0)]
AboveZero = Annotated[float, Bound(gt=0)]
Share = Annotated[float, Bound(ge=0, le=1)]


def ascends(values: Sequence[float]) -> bool:
    """Whether no value is below the one before it."""
    return list(values) == sorted(values)


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_finite(text: str) -> bool:
    """Whether Python reads a text as a finite number."""
    return is_number(text) and math.isfinite(float(text))
