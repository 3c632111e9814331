"""What the machine says of itself, where it can be read: pressure, waiting, throttling, temperature, clock, battery.

The choice needs none of it: wall and CPU times of the inferences say what the load does to them. Sensors tell people
why, and give the battery's level and the quota of CPU time. A file that is missing or cannot be read says nothing; on
Android many are hidden from apps. All files are read below two roots, so that a tree of fixtures can stand for a phone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from autotailor.runtime.waits import Quota

_SOME = re.compile(r"^some avg10=([\d.]+)", re.MULTILINE)
NANOSECONDS = 1e-9
MICROSECONDS = 1e-3
"""In milliseconds."""


@dataclass(frozen=True)
class Reading:
    """One look at the machine; None where a value cannot be read.

    Attributes:
        cpu_pressure, memory_pressure, io_pressure: percent of the last ten seconds in which some task waited (PSI).
        run_s, waited_s: seconds that this process' first thread ran, and waited for a processor (schedstat).
        throttled: times that the cgroup has used up its quota.
        temperature_c: of the hottest thermal zone, in degrees Celsius.
        clock_mhz: of the slowest core's clock now.
        clock_limit: what the clock may reach now, as a share of what the processor can; below 1 it is held back.
        battery: level, from 0 to 1, while no charger is attached.
        quota: cores that the cgroup may use; infinite without a quota.
    """

    cpu_pressure: float | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    run_s: float | None = None
    waited_s: float | None = None
    throttled: int | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None
    clock_limit: float | None = None
    battery: float | None = None
    quota: float = math.inf

    def known(self) -> dict[str, float]:
        """What could be read."""
        return {name: value for name, value in asdict(self).items() if value is not None and math.isfinite(value)}


@dataclass(frozen=True)
class Sensors:
    """Where the kernel's files are."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def read(self) -> Reading:
        """Looks at everything."""
        waits = _numbers(_text(self.proc / "self" / "schedstat"))
        statistics = self._group_statistics()
        return Reading(
            cpu_pressure=self._pressure("cpu"),
            memory_pressure=self._pressure("memory"),
            io_pressure=self._pressure("io"),
            run_s=waits[0] * NANOSECONDS if waits else None,
            waited_s=waits[1] * NANOSECONDS if len(waits) > 1 else None,
            throttled=int(statistics["nr_throttled"]) if "nr_throttled" in statistics else None,
            temperature_c=_most(self._all("class/thermal/thermal_zone*/temp"), 1e-3),
            clock_mhz=_least(self._all("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq"), 1e-3),
            clock_limit=self._clock_limit(),
            battery=self._battery(),
            quota=self.quota().cores,
        )

    def _pressure(self, kind: str) -> float | None:
        found = _SOME.search(_text(self.proc / "pressure" / kind))
        return float(found[1]) if found else None

    def _all(self, pattern: str) -> list[float]:
        """First numbers of all files below ``sys`` that match a pattern."""
        return [numbers[0] for path in sorted(self.sys.glob(pattern)) if (numbers := _numbers(_text(path)))]

    def _clock_limit(self) -> float | None:
        shares = []
        for core in sorted(self.sys.glob("devices/system/cpu/cpu[0-9]*/cpufreq")):
            now, most = (_numbers(_text(core / name)) for name in ("scaling_max_freq", "cpuinfo_max_freq"))
            if now and most and most[0] > 0:
                shares.append(now[0] / most[0])
        return min(shares, default=None)

    def _battery(self) -> float | None:
        for supply in sorted(self.sys.glob("class/power_supply/*")):
            kind, status = (_text(supply / name).strip() for name in ("type", "status"))
            level = _numbers(_text(supply / "capacity"))
            if kind == "Battery" and status == "Discharging" and level:
                return min(max(level[0] / 100, 0.0), 1.0)
        return None

    def _groups(self) -> dict[str, Path]:
        """Folders of this process' cgroups: "" is that of version 2, "cpu" that of version 1."""
        found = {}
        for line in _text(self.proc / "self" / "cgroup").splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            for name in controllers.split(","):
                if name in ("", "cpu"):
                    found[name] = self._folder(("" if not name else controllers), path)
        return found

    def _folder(self, controllers: str, path: str) -> Path:
        """A cgroup's folder; within a container its path may not be visible, and the root is the container's."""
        root = self.sys / "fs" / "cgroup" / controllers
        inner = root / path.lstrip("/")
        return inner if inner.is_dir() else root

    def _group_statistics(self) -> Mapping[str, float]:
        for folder in self._groups().values():
            pairs = [line.split() for line in _text(folder / "cpu.stat").splitlines()]
            found = {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
            if "nr_throttled" in found:
                return found
        return {}

    def quota(self) -> Quota:
        """That of the tightest cgroup from this process' up to the root; infinite without a quota."""
        tightest = Quota()
        for name, folder in self._groups().items():
            while folder != self.sys and folder != folder.parent:
                found = _quota(folder, is_second=not name)
                tightest = found if found.cores < tightest.cores else tightest
                folder = folder.parent
        return tightest


def _quota(folder: Path, is_second: bool) -> Quota:
    """Quota over period of one cgroup; infinite without a quota."""
    if is_second:
        numbers = _numbers(_text(folder / "cpu.max"))
    else:
        numbers = [n for name in ("quota", "period") for n in _numbers(_text(folder / f"cpu.cfs_{name}_us"))]
    if len(numbers) != 2 or min(numbers) <= 0:
        return Quota()
    return Quota(numbers[0] / numbers[1], numbers[1] * MICROSECONDS)


def _text(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _numbers(text: str) -> list[float]:
    """The words of a text that are whole numbers."""
    return [float(word) for word in text.split() if word.lstrip("-").isdecimal()]


def _most(values: list[float], unit: float) -> float | None:
    return max(values) * unit if values else None


def _least(values: list[float], unit: float) -> float | None:
    return min(values) * unit if values else None
