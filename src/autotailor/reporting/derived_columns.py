"""Numbers that the report computes from artifacts. Each has a name, so that a reader and a test can check it.

A derivation takes the tables and, if it is about one row, the name of the row. It returns NaN where a table is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from autotailor.profiling.networks.promise import Promise
from autotailor.reporting import accuracy_intervals, breakdown
from autotailor.reporting.comparison import Comparison
from autotailor.reporting.inputs import OPTIONAL, Tables
from autotailor.statistics import kendall_tau

NAN = float("nan")


@dataclass(frozen=True)
class Derivation:
    """A number of the report.

    Attributes:
        inputs: names of the tables from which the number is computed, as in ReportInputs.
        meaning: of the number, for the tooltip; ``{score}`` stands for the name of the share of right answers,
            ``{mean}`` for that of what is predicted, and ``{cost}`` for what budgets limit.
        compute: from the tables and the name of a row to the number.
    """

    inputs: tuple[str, ...]
    meaning: str
    compute: Callable[[Tables, str], float]


def kendall(a: pd.Series, b: pd.Series) -> float:
    """``kendall_tau`` of two columns; NaN for fewer than two rows, or where a value is missing."""
    return kendall_tau(a, b) if len(a) > 1 and not (a.isna() | b.isna()).any() else NAN


def comparison(tables: Tables) -> Comparison:
    """The exported SubNets beside the network that they are compared with."""
    return Comparison(tables.needed("summary"), tables.cost)


def reference(tables: Tables) -> str:
    """Name of the network that SubNets are compared with: the original, else the largest SubNet."""
    return comparison(tables).reference


def featured(tables: Tables) -> str:
    """The SubNet at the head of the report, see ``Comparison.featured``."""
    return comparison(tables).featured


def cost_column(tables: Tables) -> str:
    """The column of ``summary.csv`` with measured latencies if every row has one, else with the predicted cost."""
    return comparison(tables).cost_column


def scaled_means(compare: pd.DataFrame, cost: str) -> pd.DataFrame:
    """Mean cost (a column) and accuracy of each uniformly scaled network over its seeds, by rising cost."""
    means = compare.groupby("name", sort=False)[[cost, "accuracy_measured"]].mean()
    return means.sort_values(cost, kind="stable")


def _of(table: str, function: Callable[[pd.DataFrame], float]) -> Callable[[Tables, str], float]:
    """The function of a derivation that needs one table."""

    def compute(tables: Tables, row: str) -> float:
        found = tables.table(table)
        return NAN if found is None else float(function(found))

    return compute


def _lut_operators(tables: Tables, row: str) -> float:
    """Counts only the space's operators, because the LUT also holds the anchor operator."""
    lut, operators = tables.table("lut"), tables.table("operators")
    if lut is None:
        return NAN
    return float(len(lut) if operators is None else len(lut.index.intersection(operators.index)))


def _speedup(tables: Tables, row: str) -> float:
    return comparison(tables).speedup(row).value


def _accuracy_change(tables: Tables, row: str) -> float:
    return comparison(tables).accuracy_change(row).value


def _accuracy_change_error(tables: Tables, row: str) -> float:
    return comparison(tables).accuracy_change(row).error


def _budgets_met(tables: Tables, row: str) -> float:
    found = comparison(tables)
    return float(len(found.budgets) - len(found.missed))


def _budgets_measured(tables: Tables, row: str) -> float:
    return float(len(comparison(tables).budgets))


def _of_budget(tables: Tables, name: str, table: str) -> float:
    """Number of the rows of a budget, in a table with a row for each SubNet of each budget."""
    return float((tables.needed(table)["budget"] == name).sum())


def _budget_confirmed(tables: Tables, name: str) -> float:
    found = tables.needed("confirmed")
    return float((found["met"].astype(bool) & (found["budget"] == name)).sum())


def _round_entrants(tables: Tables, row: str) -> float:
    """SubNets of a budget in a round of the race (``round|budget``)."""
    found, (number, _, name) = tables.needed("polish"), row.partition("|")
    rows = found["round"] == number
    return float(sum(name in str(budgets).split() for budgets in found.loc[rows, "budgets"]))


def _over_budget(tables: Tables, row: str) -> float:
    found = comparison(tables)
    return found.number(row, tables.cost.reached) / found.number(row, tables.cost.budget) - 1


def _latency_error(tables: Tables, row: str) -> float:
    predicted = tables.number("summary", row, "latency_ms_predicted")
    return predicted / tables.number("summary", row, "latency_ms_measured") - 1


def _scaled_accuracy(tables: Tables, row: str) -> float:
    """Mean accuracy over seeds of the scaled network that the comparison matched with a SubNet."""
    compare = tables.table("compare")
    if compare is None:
        return NAN
    matched = [row in str(names).split() for names in compare["subnets"]]
    return float(compare.loc[matched, "accuracy_measured"].mean())


def _advantage(tables: Tables, row: str) -> float:
    return tables.number("summary", row, "accuracy_measured") - _scaled_accuracy(tables, row)


def _contribution(tables: Tables, row: str) -> float:
    """Share of one place (``name|place``) in the predicted latency of its SubNet."""
    contributors = tables.table("contributors")
    if contributors is None:
        return NAN
    whole = contributors.loc[contributors["name"] == contributors["name"][row], "latency_ms"].sum()
    return tables.number("contributors", row, "latency_ms") / float(whole)


def promised(tables: Tables) -> Promise | None:
    """The accuracy of the latency predictor that the configuration promises; None without a configuration."""
    section = (tables.document("configuration") or {}).get("validate", {}).get("promise")
    return Promise.from_section(section) if section else None


def promise_broken(tables: Tables) -> bool:
    """Whether there is a validation, and it shows fewer well predicted SubNets than promised."""
    validation, promise = tables.table("validation"), promised(tables)
    return validation is not None and promise is not None and not promise.is_kept(validation)


def promise_cause(tables: Tables) -> str:
    """What a broken promise is due to; an empty text where the validation lacks columns, as runs of before do."""
    validation, promise = tables.table("validation"), promised(tables)
    if validation is None or promise is None or validation[list(OPTIONAL["validation"])].isna().any(axis=None):
        return ""
    return promise.cause(validation)


def _within_promise(tables: Tables, row: str) -> float:
    validation, promise = tables.table("validation"), promised(tables)
    return NAN if validation is None or promise is None else promise.share_within(validation)


def _stage_share(tables: Tables, row: str) -> float:
    return tables.number("timings", row, "seconds") / float(tables.needed("timings")["seconds"].sum())


DERIVATIONS: dict[str, Derivation] = {
    "latency_tau": Derivation(
        ("validation",),
        "Kendall's tau of predicted and measured latency",
        _of("validation", lambda t: kendall(t["predicted_ms"], t["measured_ms"])),
    ),
    "latency_within_5": Derivation(
        ("validation",),
        "share of SubNets with a relative error of at most 5 %",
        _of("validation", lambda t: (t["relative_error"].abs() <= 0.05).mean()),
    ),
    "latency_within_10": Derivation(
        ("validation",),
        "share of SubNets with a relative error of at most 10 %",
        _of("validation", lambda t: (t["relative_error"].abs() <= 0.10).mean()),
    ),
    "latency_promise": Derivation(
        ("validation", "configuration"), "share of SubNets predicted as well as promised", _within_promise
    ),
    "latency_median_error": Derivation(
        ("validation",),
        "median of the absolute relative error",
        _of("validation", lambda t: t["relative_error"].abs().median()),
    ),
    "latency_raw_error": Derivation(
        ("validation",),
        "median of the absolute relative error, without correction of the machine's drift since profiling",
        _of("validation", lambda t: t["raw_error"].abs().median()),
    ),
    "latency_bias": Derivation(
        ("validation",), "mean of the relative error", _of("validation", lambda t: t["relative_error"].mean())
    ),
    "latency_noise_floor": Derivation(
        ("validation",), "median noise floor", _of("validation", lambda t: t["noise_floor"].median())
    ),
    "latency_subnets": Derivation(("validation",), "SubNets measured", _of("validation", len)),
    "accuracy_tau": Derivation(
        ("accuracy_validation",),
        "Kendall's tau of predicted and measured {mean}",
        _of("accuracy_validation", lambda t: kendall(t["predicted"], t["measured"])),
    ),
    "accuracy_tau_error": Derivation(
        ("accuracy_validation",),
        "standard error of this tau over draws of SubNets (jackknife)",
        _of("accuracy_validation", accuracy_intervals.tau_error),
    ),
    "accuracy_tau_by_chance": Derivation(
        ("accuracy_validation",),
        "standard deviation of Kendall's tau of as many unrelated numbers",
        _of("accuracy_validation", accuracy_intervals.tau_by_chance),
    ),
    "accuracy_ceiling": Derivation(
        ("accuracy_validation",),
        "Kendall's tau of the true {mean} and the measured one, by the noise of the measurements",
        _of("accuracy_validation", accuracy_intervals.tau_ceiling),
    ),
    "accuracy_coverage": Derivation(
        ("accuracy_validation",),
        "share of SubNets whose measured {mean} is within the 80 % interval, up to a shift that all have in common",
        _of("accuracy_validation", accuracy_intervals.covered),
    ),
    "accuracy_coverage_error": Derivation(
        ("accuracy_validation",),
        "standard error of the share of as many SubNets that right intervals would cover",
        _of("accuracy_validation", accuracy_intervals.covered_error),
    ),
    "accuracy_mean_error": Derivation(
        ("accuracy_validation",),
        "mean of the absolute difference, in points",
        _of("accuracy_validation", lambda t: (t["predicted"] - t["measured"]).abs().mean()),
    ),
    "accuracy_bias": Derivation(
        ("accuracy_validation",),
        "mean of predicted minus measured, in points",
        _of("accuracy_validation", lambda t: (t["predicted"] - t["measured"]).mean()),
    ),
    "accuracy_subnets": Derivation(("accuracy_validation",), "SubNets measured", _of("accuracy_validation", len)),
    "front_subnets": Derivation(("pareto",), "SubNets on the front", _of("pareto", len)),
    "lut_operators": Derivation(("lut", "operators"), "operators of the space that were measured", _lut_operators),
    "lut_precision": Derivation(
        ("lut",),
        "median of the relative standard error",
        _of("lut", lambda t: (t["standard_error"] / t["latency_ms"].where(t["latency_ms"] > 0)).median()),
    ),
    "operator_places": Derivation(
        ("operators",), "places that use the operators", _of("operators", lambda t: t["places"].sum())
    ),
    "sensitivity_rows": Derivation(("sensitivity",), "modifications measured", _of("sensitivity", len)),
    "sensitivity_error": Derivation(
        ("sensitivity",),
        "median standard error, in points",
        _of("sensitivity", lambda t: t["standard_error"].median()),
    ),
    "total_seconds": Derivation(("timings",), "all stages", _of("timings", lambda t: t["seconds"].sum())),
    "stage_share": Derivation(("timings",), "share of all stages", _stage_share),
    "speedup": Derivation(("summary",), "{cost} of the reference over {cost} of this network", _speedup),
    "accuracy_change": Derivation(("summary",), "{score} minus that of the reference, in points", _accuracy_change),
    "accuracy_change_error": Derivation(
        ("summary",), "standard error of that difference: both see the same images", _accuracy_change_error
    ),
    "latency_error": Derivation(("summary",), "predicted over measured latency, minus one", _latency_error),
    "scaled_accuracy": Derivation(
        ("compare",), "{score} of the scaled network at this {cost}, mean over seeds", _scaled_accuracy
    ),
    "advantage": Derivation(
        ("summary", "compare"), "{score} minus that of the scaled network at this {cost}", _advantage
    ),
    "saved": Derivation(
        ("contributors",), "latency of the place in the original network minus that in this one", breakdown.saved
    ),
    "kind_latency": Derivation(
        ("contributors",), "sum over the operators of this kind", partial(breakdown.group_latency, column="kind")
    ),
    "stage_latency": Derivation(
        ("contributors",), "sum over the operators of this stage", partial(breakdown.group_latency, column="stage")
    ),
    "budgets_met": Derivation(("summary",), "budgets that are kept when measured", _budgets_met),
    "budgets_measured": Derivation(("summary",), "budgets of SubNets that were measured", _budgets_measured),
    "over_budget": Derivation(("summary",), "measured {cost} over the budget, minus one", _over_budget),
    "budget_candidates": Derivation(
        ("candidates",), "SubNets evaluated for this budget", partial(_of_budget, table="candidates")
    ),
    "budget_confirmed": Derivation(
        ("confirmed",), "SubNets that meet this budget as surely as asked, as measured", _budget_confirmed
    ),
    "round_entrants": Derivation(("polish",), "SubNets of this budget in this round of the race", _round_entrants),
    "contribution": Derivation(("contributors",), "share of the SubNet's predicted latency", _contribution),
}
