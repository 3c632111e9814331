"""What the script of the report knows of each SubNet."""

import json
import shlex

import pandas as pd
import pytest

from autotailor.reporting import ReportInputs
from autotailor.reporting.explorer import command, explorer
from autotailor.reporting.inputs import DRAWN, Tables


def test_every_exported_subnet_and_the_whole_front_are_known(inputs: ReportInputs) -> None:
    found = {subnet["id"]: subnet for subnet in explorer(Tables(inputs))["subnets"]}
    summary, pareto = pd.read_csv(inputs.summary).set_index("name"), pd.read_csv(inputs.pareto, dtype={"subnet": str})
    candidates = pd.read_csv(inputs.candidates, dtype={"subnet": str})
    assert set(found) == {*summary.index, *pareto["subnet"], *candidates["subnet"]}
    for _, row in candidates.iterrows():
        evaluated = [row["latency_ms_expected"], None, row["accuracy_posterior"], row["posterior_standard_error"]]
        assert found[row["subnet"]]["evaluated"] == pytest.approx(evaluated)
    for name, row in summary.iterrows():
        measured = [row[c] for c in ("latency_ms_measured", "latency_ms_standard_error", "accuracy_measured")]
        assert found[name]["measured"][:3] == pytest.approx(measured, rel=1e-5)
    assert (found["budget_01"]["budget"], found["budget_01"]["met"]) == (0.38, False)
    assert (found["largest"]["budget"], found["largest"]["met"]) == (None, None)
    assert found["original"]["command"] is None
    json.dumps(list(found.values()), allow_nan=False)


def test_of_a_long_front_as_many_subnets_are_offered_as_are_drawn(inputs: ReportInputs) -> None:
    pareto = pd.read_csv(inputs.pareto, dtype={"subnet": str})
    cost = pd.Series(range(3 * DRAWN)) / DRAWN + pareto["latency_ms_expected"].max()
    longer = pareto.iloc[[-1] * len(cost)].reset_index(drop=True)
    longer = longer.assign(
        latency_ms_expected=cost, subnet=[f"{number:012x}" for number in range(1000, 1000 + len(cost))]
    )
    pd.concat([pareto, longer]).to_csv(inputs.pareto, index=False)
    known = explorer(Tables(inputs))["subnets"]
    drawn = [subnet["predicted"][0] for subnet in known if subnet["kind"] == "front"]
    assert DRAWN / 2 < len(drawn) <= DRAWN
    ends = [pareto["latency_ms_expected"].min(), cost.max()]
    assert [drawn[0], drawn[-1]] == pytest.approx(ends, rel=1e-5)
    assert all(subnet["choices"] for subnet in known if subnet["kind"] == "front")


def test_assignments_come_from_the_exports_and_from_the_front(inputs: ReportInputs) -> None:
    known = explorer(Tables(inputs))
    found = {subnet["id"]: subnet["choices"] for subnet in known["subnets"]}
    assert dict(zip(known["variables"], found["budget_02"], strict=True)) == {
        "resolution": 32,
        "stage1.depth": 2,
        "stage1.width": pytest.approx(1 / 3),
    }
    assert found["original"] is None
    assert known["variables"] == ["resolution", "stage1.depth", "stage1.width"]
    assert found[f"{7:012x}"] == [24, 1, 0.5]


def test_a_run_without_a_device_compares_macs(counted_inputs: ReportInputs) -> None:
    known = explorer(Tables(counted_inputs))
    assert known["cost"] == {"title": "MACs", "unit": "M", "measured": False}
    (found,) = (subnet for subnet in known["subnets"] if subnet["id"] == "budget_02")
    assert found["measured"] == [10.3, None, 91.4, 0.5]


def test_names_of_the_shell_are_quoted(inputs: ReportInputs) -> None:
    words = shlex.split(command(Tables(inputs), "a b;c"))
    assert words[-3:] == ["a b;c", "--output", "more/a b;c"]
