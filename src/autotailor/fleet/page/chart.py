"""The fronts of all networks on one device as SVG, drawn by the page's template in the colours of the page."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from autotailor.fleet.runs import Fleet
from autotailor.reporting.inputs import DRAWN

WIDTH, HEIGHT = 640.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 14.0, 14.0, 54.0
TICKS = 5


@dataclass(frozen=True)
class Tick:
    """A line of the grid: its place in the drawing, and the value that stands beside it."""

    place: float
    label: str


@dataclass(frozen=True)
class Line:
    """The front of one network: its name, its corners ``x,y`` as SVG takes them, and its dots in the united front."""

    name: str
    points: str
    best: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """One device.

    Attributes:
        device: its name.
        unit: of the horizontal axis.
        x: ticks of cost.
        y: ticks of accuracy.
        lines: one for each network; ``best`` are the points of the united front.
    """

    device: str
    unit: str
    x: Sequence[Tick]
    y: Sequence[Tick]
    lines: Sequence[Line]


@dataclass(frozen=True)
class Axis:
    """Maps values to places; ``low`` and ``high`` are the ends of the axis."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Where a value stands in the drawing."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[Tick]:
        """Round values between the ends."""
        width = (self.high - self.low) or 1.0
        step = 10.0 ** np.floor(np.log10(width / TICKS))
        step *= next(factor for factor in (1, 2, 5, 10) if width / (step * factor) <= TICKS)
        first, last = int(np.ceil(self.low / step - 1e-9)), int(np.floor(self.high / step + 1e-9))
        return [Tick(self.place(number * step), f"{number * step:.6g}") for number in range(first, last + 1)]


def _steps(x: Sequence[float], y: Sequence[float]) -> list[str]:
    """The points of a front as a staircase: between two SubNets, the cheaper one is the best within the budget."""
    corners = [(after, height) for after, height in zip(x[1:], y, strict=False)]
    both = zip(zip(x, y, strict=True), [*corners, None], strict=True)
    return [f"{place[0]},{place[1]}" for pair in both for place in pair if place is not None]


def chart(fleet: Fleet, device: str, united: pd.DataFrame) -> Chart:
    """The fronts of all networks on a device.

    Args:
        fleet: all runs.
        device: one of its devices.
        united: a result of ``best.united_front``.
    """
    fronts = {model: fleet.of(model, device).pareto.spread(DRAWN) for model in fleet.models}
    costs = np.concatenate([front.cost for front in fronts.values()])
    accuracies = np.concatenate([front.accuracy for front in fronts.values()])
    x = Axis(float(costs.min()), float(costs.max()), LEFT, WIDTH - RIGHT)
    y = Axis(float(accuracies.min()), float(accuracies.max()), HEIGHT - BOTTOM, TOP)
    here = united[united["device"] == device]
    lines = []
    for model, front in fronts.items():
        points = " ".join(_steps([x.place(c) for c in front.cost], [y.place(a) for a in front.accuracy]))
        best = here[here["model"] == model]
        places = zip(best["cost_predicted"], best["accuracy_predicted"], strict=True)
        lines.append(Line(model, points, [(x.place(c), y.place(a)) for c, a in places]))
    return Chart(device, fleet.unit(device), x.ticks(), y.ticks(), lines)
