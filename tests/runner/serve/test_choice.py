"""The choice in C++ equals the choice in Python: the same tables, the same inferences, the same decisions."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.runtime import Entry, Monitor, Policy, Table, decide
from autotailor.runtime.controller import best_of
from autotailor.runtime.waits import Quota
from compiled import compiled

ASKED = r"""
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include "choice/choice.h"

static double number(std::istream& words) {  // inf and nan, too
    std::string word;
    words >> word;
    return std::strtod(word.c_str(), nullptr);
}

int main() {
    std::unique_ptr<Chooser> chooser;
    Monitor monitor;
    Policy policy;
    for (std::string line, what; std::getline(std::cin, line);) {
        std::istringstream words(line);
        words >> what;
        if (what == "table") {
            std::vector<Entry> entries(static_cast<size_t>(number(words)));
            for (Entry& entry : entries) {
                entry.accuracy = number(words);
                for (double& each : entry.split_ms) each = number(words);
                entry.energy_mj = number(words);
            }
            chooser = std::make_unique<Chooser>(entries);
            monitor = Monitor();
        } else if (what == "policy") {
            policy = Policy();
            policy.deadline_ms = number(words);
            policy.quantile = number(words);
            policy.rate = number(words);
            policy.quota = number(words);
            policy.margin = number(words);
            policy.dwell_s = number(words);
            policy.horizon = static_cast<int>(number(words));
            policy.check();
        } else if (what == "battery") {
            chooser->set_battery(number(words));
        } else if (what == "observe") {
            double split_ms[3];
            for (double& each : split_ms) each = number(words);
            const double wall = number(words), cpu = number(words);
            monitor.observe(split_ms, wall, cpu);
        } else if (what == "note") {
            const double residual = number(words), wall = number(words), cpu = number(words);
            monitor.note(residual, wall, cpu);
        } else if (what == "quota") {
            const double cores = number(words), period_ms = number(words);
            monitor.waits.move_to_quota({cores, period_ms}, {number(words), period_ms});
        } else if (what == "best") {
            std::vector<size_t> rows;
            for (std::string row; words >> row;) rows.push_back(static_cast<size_t>(std::stod(row)));
            std::printf("%zu\n", chooser->best_of(rows));
        } else if (what == "decide") {
            const size_t active = static_cast<size_t>(number(words));
            const Decision found = chooser->decide(monitor, policy, active, number(words));
            std::printf("%zu|%s|%.17g", found.row, text_of(found.event), found.latency_ms);
            for (double each : monitor.load.slowdown) std::printf("|%.17g", each);
            std::printf("|%.17g|%.17g\n", monitor.load.waiting, monitor.forecast.factor(policy.horizon));
        }
    }
}
"""


@dataclass
class Twins:
    """What is asked of the program in C++, and what the code in Python says."""

    lines: list[str] = field(default_factory=list)
    expected: list[tuple[int, str, list[float]]] = field(default_factory=list)
    best: list[int] = field(default_factory=list)
    forgotten: int = 0
    stepped: int = 0
    moved: int = 0

    def say(self, what: str, *values: float) -> None:
        self.lines.append(" ".join([what, *(repr(float(value)) for value in values)]))


def replayed(twins: Twins, seed: int) -> None:
    """A random table under a random load, with settings that change."""
    rng = np.random.default_rng(seed)
    entries = [
        Entry(f"s{i}", float(rng.integers(50, 90)), tuple(rng.uniform(0, 2, 3)), float(rng.uniform(1, 5)))
        for i in range(int(rng.choice([1, 2, 16, 200])))
    ]
    table, monitor = Table.of(entries), Monitor()
    twins.say("table", len(entries), *(v for e in entries for v in (e.accuracy, *e.split_ms, e.energy_mj)))
    wave, step = rng.uniform(0, 0.6), int(rng.integers(10, 60))
    active, battery, policy = table.fastest, None, Policy(1.0)
    for turn in range(70):
        if turn % 9 == 0:
            policy = Policy(
                deadline_ms=float(rng.uniform(0.5, 12)),
                quantile=float(rng.choice([0.5, 0.9, 0.95, 0.99])),
                rate=float(rng.choice([0, 100, 400])),
                quota=float(rng.choice([math.inf, 0.2, 0.6])),
                margin=float(rng.choice([0, 0.1, 0.3])),
                dwell_s=float(rng.choice([0, 0.5])),
                horizon=int(rng.integers(1, 4)),
            )
            battery = None if rng.random() < 0.6 else float(rng.uniform())
            twins.say("policy", *(getattr(policy, name) for name in policy.__dataclass_fields__))
            twins.say("battery", math.nan if battery is None else battery)
        split = table.split_ms[active]
        load = [1.2 + wave * math.sin(turn / 3), 1.9, 1.0] if turn < step else [2.6, 3.4, 1.5]
        cpu = float(split @ load) * rng.uniform(0.95, 1.1)
        wall = cpu * rng.uniform(1, 1.3)
        if seed % 2:  # interruptions that become rarer
            is_interrupted = rng.random() < (0.6 if turn < step else 0.05)
            wall = cpu + (rng.uniform(2, 9) if is_interrupted else 0.0)
        if seed % 3 == 2:  # long inferences under a quota that changes
            split, cpu = 12 * split, 12 * cpu
            wall = cpu * (1 + (0.2 if turn < step else 0.8) * rng.uniform(0.9, 1.1))
        if turn % 11 == 10:
            monitor = monitor.noted(wall / cpu, wall, cpu)
            twins.say("note", wall / cpu, wall, cpu)
        else:
            remembered = len(monitor.waits.cpu_ms)
            monitor = monitor.observed(split, wall, cpu)
            is_less = len(monitor.waits.cpu_ms) < remembered
            twins.forgotten += is_less
            twins.stepped += is_less and seed % 3 == 2
            twins.say("observe", *split, wall, cpu)
        if seed % 3 == 2 and turn in (
            20,
            50,
        ):  # at the second look, the quota before may not have been what forced the waiting
            before, after = 0.83, float(rng.choice([0.25, 0.6, 1.0]))
            period = float(rng.choice([20.0, 100.0, 1000.0]))
            waits = monitor.waits
            monitor = replace(monitor, waits=waits.under_quota(Quota(before, period), Quota(after, period)))
            twins.moved += monitor.waits is not waits
            twins.say("quota", before, period, after)
        since = float(rng.choice([0.1, 9]))
        decision = decide(table, monitor, policy, active, since, battery)
        twins.say("decide", active, since)
        known = [*monitor.load.slowdown, monitor.load.waiting, monitor.forecast.factor(policy.horizon)]
        twins.expected.append((decision.row, decision.event, [decision.latency_ms, *known]))
        loaded = sorted(rng.choice(len(table), min(3, len(table)), replace=False).tolist())
        twins.say("best", *loaded)
        twins.best.append(best_of(loaded, table, monitor, policy, battery))
        active = decision.row if rng.random() < 0.8 else int(rng.integers(len(table)))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("choice"), ASKED)


def test_decisions_and_what_is_known_of_the_load_are_the_same(program: Path) -> None:
    twins = Twins()
    for seed in range(60):
        replayed(twins, seed)
    assert twins.forgotten - twins.stepped > 10  # how often what waited before a calm was forgotten
    assert twins.stepped > 10  # and before a step
    assert twins.moved > 10  # how often waits were moved to another quota
    text = "".join(f"{line}\n" for line in twins.lines)
    said = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == 2 * len(twins.expected) == 2 * 60 * 70
    assert [int(line) for line in said[1::2]] == twins.best
    for line, (row, event, values) in zip(said[::2], twins.expected, strict=True):
        found_row, found_event, *found = line.split("|")
        assert (int(found_row), found_event) == (row, event)
        np.testing.assert_allclose([float(each) for each in found], values, rtol=1e-7)
    events = [event for _, event, _ in twins.expected]
    assert {"up", "down", "stay", "nothing fits"} == set(events)
    assert any(values[-1] != 1 for _, _, values in twins.expected), "the forecast is used at times"


def test_a_constant_load_has_a_forecast_too(program: Path) -> None:
    """Columns of the design that are all alike have no unique solution."""
    lines = ["table 1 50 1 1 1 nan", "policy 5 0.95 0 inf 0.1 0.5 3", *["observe 1 1 1 3 3"] * 40, "decide 0 9"]
    said = subprocess.run([str(program)], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    row, event, *values = said.stdout.strip().split("|")
    assert (row, event) == ("0", "stay")
    np.testing.assert_allclose([float(value) for value in values], [3, 1, 1, 1, 0, 1], rtol=1e-9)
