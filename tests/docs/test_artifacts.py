"""The page of artifacts names every file that a rule writes, and the columns that tables have."""

import re
from pathlib import Path

import pytest

from autotailor.enumeration import cover
from autotailor.finetuning.polishing import race
from autotailor.fleet import best, single
from autotailor.fleet.page import write
from autotailor.measurement import comparison
from autotailor.prediction.evaluations import storage
from autotailor.profiling.networks import validation
from autotailor.profiling.table import lut
from autotailor.reporting.inputs import COLUMNS
from autotailor.search.choice import columns as candidate_columns
from autotailor.search.cost import LATENCY
from autotailor.sensitivity import measurement
from autotailor.sensitivity import validation as accuracy_validation
from autotailor.stages import WRITER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "artifacts.md").read_text(encoding="utf-8")
TABLES = {
    "operators.csv": cover.COLUMNS,
    "lut.csv": lut.COLUMNS,
    "validation.csv": validation.COLUMNS,
    "candidates.csv": candidate_columns(LATENCY),
    "polish.csv": race.COLUMNS,
    "compare.csv": comparison.columns(LATENCY),
    "best.csv": best.BEST,
    "front.csv": best.FRONT,
    "exports.csv": best.EXPORTS,
    "single.csv": single.SINGLE,
    "effort.csv": write.EFFORT,
    "sensitivity.csv": measurement.COLUMNS,
    "evaluations.csv": storage.COLUMNS,
    "accuracy_validation.csv": accuracy_validation.COLUMNS,
}


def outputs() -> list[str]:
    """Files that the rules write, without those of provenance, whose names are the rules'."""
    return sorted(file for file in WRITER if "{export}" not in file)


def test_rules_write_files() -> None:
    assert {"space.json", "lut.csv", "figures/front.svg"} <= set(outputs())


@pytest.mark.parametrize("name", outputs())
def test_a_file_that_a_rule_writes_is_on_the_page(name: str) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| `") and f"`{name}`" in line.split("|")[1])
    assert row.split("|")[2].strip() == WRITER[name].name


@pytest.mark.parametrize("name", TABLES)
def test_the_columns_of_a_table_are_on_the_page_in_their_order(name: str) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
    assert re.findall(r"`(\w+)`", row.split("|")[3]) == list(TABLES[name])


@pytest.mark.parametrize("name", ["pareto", "contributors", "summary"])
def test_the_columns_that_the_report_needs_are_on_the_page(name: str) -> None:
    assert [column for column in COLUMNS[name] if f"`{column}`" not in PAGE] == []
