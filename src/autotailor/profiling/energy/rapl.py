"""Intel's and AMD's RAPL: ``powercap/intel-rapl:N/energy_uj``, for root only; it wraps at ``max_energy_range_uj``."""

from __future__ import annotations

from pathlib import Path

from autotailor.profiling.energy.base import Counter, number, text

PACKAGE = "package"


class Rapl(Counter):
    """The sum of all processor packages."""

    def __init__(self, packages: tuple[Path, ...]) -> None:
        self.name = f"RAPL ({', '.join(text(path / 'name') for path in packages)})"
        self.packages = packages
        self.last = [number(path / "energy_uj") or 0.0 for path in packages]
        self.ranges = [number(path / "max_energy_range_uj") or 0.0 for path in packages]
        self.total = 0.0

    def joules(self) -> float:
        """Joules since the sensor was opened; a counter that is lower than before has wrapped once."""
        for i, path in enumerate(self.packages):
            now = number(path / "energy_uj")
            if now is not None:
                self.total += now - self.last[i] + (self.ranges[i] if now < self.last[i] else 0.0)
                self.last[i] = now
        return self.total / 1e6


def find_rapl(root: Path) -> Rapl | None:
    """The packages whose counters this user may read."""
    zones = sorted((root / "class" / "powercap").glob("intel-rapl:*"))
    packages = [zone for zone in zones if text(zone / "name").startswith(PACKAGE)]
    readable = tuple(zone for zone in packages if number(zone / "energy_uj") is not None)
    return Rapl(readable) if readable else None
