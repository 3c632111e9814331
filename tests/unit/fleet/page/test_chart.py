from pathlib import Path

import fleets
from autotailor.fleet.best import united_front
from autotailor.fleet.page.chart import Axis, chart


def test_an_axis_has_round_ticks_between_its_ends() -> None:
    axis = Axis(0.034, 0.171, 50.0, 600.0)
    assert [tick.label for tick in axis.ticks()] == ["0.05", "0.1", "0.15"]
    assert [axis.place(value) for value in (0.034, 0.171)] == [50.0, 600.0]


def test_every_network_has_a_line_and_the_united_front_has_dots(tmp_path: Path) -> None:
    fleet, known = fleets.fleet(tmp_path)
    united = united_front(fleet)
    found = chart(fleet, "phone", united)
    assert [line.name for line in found.lines] == list(fleets.MODELS)
    for line in found.lines:
        assert len(line.points.split()) == 2 * len(known[line.name, "phone"].run.pareto) - 1  # a staircase
    assert sum(len(line.best) for line in found.lines) == (united["device"] == "phone").sum()
