"""What a client may change while a pool runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotailor.runtime.controller import Policy
from autotailor.runtime.errors import PoolError

NUMBERS = ("deadline_ms", "quantile", "rate")
NULLABLE = ("battery", "quota")
KEYS = (*NUMBERS, *NULLABLE, "pin")


@dataclass(frozen=True)
class Settings:
    """What is asked of a running pool.

    Attributes:
        policy: deadline, probability, rate, margin and dwell; its quota is infinite where the machine's holds.
        battery: level from 0 to 1; None takes the machine's where it can be read.
        pin: name of a member that runs whatever the load is; None lets the pool choose.
    """

    policy: Policy
    battery: float | None = None
    pin: str | None = None

    def changed(self, content: Mapping[str, Any], members: Sequence[str]) -> Settings:
        """The settings after a request ``set``.

        Args:
            content: keys and values of the request.
            members: names that can be pinned.

        Raises:
            PoolError: a key is unknown, or a value is invalid; nothing has changed then.
        """
        if unknown := [key for key in content if key not in KEYS]:
            raise PoolError(f"set: {unknown[0]!r} is no setting; there are {', '.join(KEYS)}")
        policy, battery, pin = self.policy, self.battery, self.pin
        for key, value in content.items():
            if key == "pin":
                if value is not None and value not in members:
                    raise PoolError(f"set: {value!r} is no member; there are {', '.join(members)}, or null")
                pin = value
            elif key == "battery":
                battery = None if value is None else _number(key, value)
                if battery is not None and not 0 <= battery <= 1:
                    raise PoolError(f"set: battery is {battery}, expected a level from 0 to 1, or null")
            elif key == "quota":
                policy = replace(policy, quota=math.inf if value is None else _number(key, value))
            else:
                policy = replace(policy, **{key: _number(key, value)})  # type: ignore[arg-type]
        return Settings(policy, battery, pin)

    def to_dict(self) -> dict[str, Any]:
        """All settings, as JSON has them."""
        quota = None if math.isinf(self.policy.quota) else self.policy.quota
        numbers = {name: getattr(self.policy, name) for name in NUMBERS}
        return {**numbers, "battery": self.battery, "quota": quota, "pin": self.pin}


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PoolError(f"set: {key} is {value!r}, expected a number")
    try:
        return float(value)
    except OverflowError as error:
        raise PoolError(f"set: {key} is too large for a number") from error
