"""Jetson's INA3221: a monitor of three rails under ``hwmon``, in mV and mA; the board's input is ``VDD_IN``."""

from __future__ import annotations

from pathlib import Path

from autotailor.profiling.energy.base import Gauge, number, text

TOTALS = ("VDD_IN", "POM_5V_IN", "SYS_VIN", "VIN_SYS_5V0")
"""Rails that feed the whole board, by the names that boards give them."""


class Ina3221(Gauge):
    """The rail of the whole board, or the sum of all rails where none is known as that."""

    def __init__(self, rails: tuple[tuple[Path, int], ...]) -> None:
        self.rails = rails
        self.name = f"INA3221 ({', '.join(text(monitor / f'in{i}_label') for monitor, i in rails)})"

    def watts(self) -> float:
        """Power of the rails."""
        return sum(
            (number(monitor / f"in{i}_input") or 0.0) * (number(monitor / f"curr{i}_input") or 0.0) / 1e6
            for monitor, i in self.rails
        )


def find_ina3221(root: Path) -> Ina3221 | None:
    """The rails that can be read; labels stand at their voltages (``in1_label``)."""
    monitors = sorted((root / "class" / "hwmon").glob("hwmon*"))
    rails = tuple(
        (monitor, i)
        for monitor in monitors
        if text(monitor / "name") == "ina3221"
        for i in (1, 2, 3)
        if number(monitor / f"in{i}_input") is not None and number(monitor / f"curr{i}_input") is not None
    )
    total = tuple((monitor, i) for monitor, i in rails if text(monitor / f"in{i}_label") in TOTALS)
    return Ina3221(total or rails) if rails else None
