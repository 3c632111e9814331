"""Energy counters of Intel and AMD processors (RAPL): ``powercap/intel-rapl:N/energy_uj``.

Only root may read the counters. A counter starts again from 0 at ``max_energy_range_uj``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotailor.profiling.energy.base import Files, FloatArray, Sensor, folders, readable, value

ZONES = "class/powercap/intel-rapl:*"
PATTERNS = tuple(f"{ZONES}/{name}" for name in ("name", "energy_uj", "max_energy_range_uj"))
PACKAGE = "package"


@dataclass(frozen=True)
class Rapl(Sensor):
    """The sum of all processor packages.

    Attributes:
        ranges: microjoules at which each counter starts again from 0.
    """

    ranges: tuple[float, ...]

    def joules(self, seconds: Sequence[float], files: Sequence[Files]) -> FloatArray:
        """Adds up the counters' steps. A counter that is lower than before has started again once."""
        total = np.zeros(len(files))
        for path, period in zip(self.paths, self.ranges, strict=True):
            steps = np.diff([value(reading, path) for reading in files])
            total[1:] += np.cumsum(np.where(steps < 0, steps + period, steps))
        return total / 1e6


def find_rapl(files: Files) -> Rapl | None:
    """A sensor over the processor packages whose counters this user may read; None where there are none."""
    packages = tuple(
        zone
        for zone in folders(files, f"{ZONES}/name")
        if files[f"{zone}/name"].startswith(PACKAGE) and readable(files, f"{zone}/energy_uj")
    )
    if not packages:
        return None
    ranges = tuple(value(files, f"{zone}/max_energy_range_uj") for zone in packages)
    name = f"RAPL ({', '.join(files[f'{zone}/name'] for zone in packages)})"
    return Rapl(name, tuple(f"{zone}/energy_uj" for zone in packages), ranges)
