"""Settings: what may be changed, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.runtime import Policy, PoolError
from autotailor.runtime.serving.settings import KEYS, Settings

SETTINGS = Settings(Policy(5.0))
MEMBERS = ("a", "b")


def test_each_key_is_changed_and_the_others_stay() -> None:
    asked = {"deadline_ms": 3, "quantile": 0.9, "rate": 10.5, "battery": 0.5, "quota": 1.5, "pin": "b"}
    assert SETTINGS.changed(asked, MEMBERS).to_dict() == asked
    for key, value in asked.items():
        assert SETTINGS.changed({key: value}, MEMBERS).to_dict() == {**SETTINGS.to_dict(), key: value}


def test_null_takes_back_what_can_be_left_to_the_pool() -> None:
    changed = SETTINGS.changed({"battery": 0.5, "quota": 1.5, "pin": "b"}, MEMBERS)
    assert changed.changed({"battery": None, "quota": None, "pin": None}, MEMBERS) == SETTINGS
    assert math.isinf(SETTINGS.policy.quota)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"deadline": 3}, "'deadline' is no setting"),
        ({"deadline_ms": 0}, "deadline_ms is 0"),
        ({"deadline_ms": None}, "expected a number"),
        ({"deadline_ms": "3"}, "expected a number"),
        ({"deadline_ms": True}, "expected a number"),
        ({"rate": 10**400}, "too large"),
        ({"quantile": 0.3}, "quantile is 0.3"),
        ({"battery": 1.5}, "battery is 1.5"),
        ({"quota": 0}, "quota is 0"),
        ({"pin": "c"}, "'c' is no member"),
        ({"pin": ["a"]}, "no member"),
    ],
)
def test_what_is_invalid_is_refused_with_its_name(content: dict[str, Any], message: str) -> None:
    with pytest.raises(PoolError, match=message):
        SETTINGS.changed(content, MEMBERS)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(), VALUES))
def test_whatever_is_asked_gives_valid_settings_or_an_error(content: dict[str, Any]) -> None:
    try:
        changed = SETTINGS.changed(content, MEMBERS)
    except PoolError:
        return
    assert 0 < changed.policy.deadline_ms < math.inf
    assert changed.battery is None or 0 <= changed.battery <= 1
    assert changed.pin in (None, *MEMBERS)
