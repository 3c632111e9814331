"""Jetson's power monitor INA3221: it reports three rails under ``hwmon``, in mV and mA. ``VDD_IN`` feeds the board."""

from autotailor.profiling.energy.base import Files, Gauge, folders, readable, value

MONITORS = "class/hwmon/hwmon*"
PATTERNS = (
    f"{MONITORS}/name",
    *(f"{MONITORS}/{name}" for name in ("in[1-3]_label", "in[1-3]_input", "curr[1-3]_input")),
)
TOTALS = ("VDD_IN", "POM_5V_IN", "SYS_VIN")
"""Labels of rails that feed the whole board; they differ from board to board."""
PARTS = {"VDDQ_VDD2_1V8AO": "VIN_SYS_5V0"}
"""Rails that another rail feeds, which measures their power as well. VIN_SYS_5V0 of the AGX Orin is no total: CPU and
GPU have rails beside it."""


class Ina3221(Gauge):
    """The rail that feeds the whole board, or else the sum of all rails. ``paths`` hold mV and mA in turn."""

    def watts(self, files: Files) -> float:
        """Power of the rails."""
        numbers = [value(files, path) for path in self.paths]
        return sum(mv * ma / 1e6 for mv, ma in zip(numbers[::2], numbers[1::2], strict=True))


def find_ina3221(files: Files) -> Ina3221 | None:
    """The rails that can be read. A rail's label is in the file beside its voltage (``in1_label``)."""
    rails = [
        (files.get(f"{monitor}/in{i}_label", f"rail {i}"), (f"{monitor}/in{i}_input", f"{monitor}/curr{i}_input"))
        for monitor in folders(files, f"{MONITORS}/name")
        if files[f"{monitor}/name"] == "ina3221"
        for i in (1, 2, 3)
        if readable(files, f"{monitor}/in{i}_input") and readable(files, f"{monitor}/curr{i}_input")
    ]
    labels = {label for label, _ in rails}
    rails = [rail for rail in rails if rail[0] in TOTALS] or [r for r in rails if PARTS.get(r[0]) not in labels]
    if not rails:
        return None
    return Ina3221(f"INA3221 ({', '.join(label for label, _ in rails)})", tuple(p for _, paths in rails for p in paths))
