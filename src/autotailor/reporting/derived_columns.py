"""Numbers that the report computes from artifacts. Each has a name, so that a reader and a test can check it.

A derivation takes the tables and, if it is about one row, the name of the row. It returns NaN where a table is missing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from autotailor.profiling.networks.promise import Promise
from autotailor.reporting import accuracy_intervals, breakdown
from autotailor.reporting.comparison import Comparison
from autotailor.reporting.inputs import OPTIONAL, Tables
from autotailor.search import expected_from_others
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


def scaled_means(compare: pd.DataFrame, cost: str) -> pd.DataFrame:
    """Mean cost (a column) and accuracy of each uniformly scaled network over its seeds, by rising cost."""
    means = compare.groupby("name", sort=False)[[cost, "accuracy_measured"]].mean()
    return means.sort_values(cost, kind="stable")


def _of(table: str, meaning: str, function: Callable[[pd.DataFrame], float]) -> Derivation:
    """A derivation from one table."""

    def compute(tables: Tables, row: str) -> float:
        frame = tables.table(table)
        return NAN if frame is None else float(function(frame))

    return Derivation((table,), meaning, compute)


def _compared(meaning: str, function: Callable[[Comparison, str], float]) -> Derivation:
    """A derivation from the comparison of the exported SubNets with the reference."""
    return Derivation(("summary",), meaning, lambda tables, row: float(function(tables.compared, row)))


def _lut_operators(tables: Tables, row: str) -> float:
    """Counts only the space's operators, because the LUT also holds the anchor operator."""
    lut, operators = tables.table("lut"), tables.table("operators")
    if lut is None:
        return NAN
    return float(len(lut) if operators is None else len(lut.index.intersection(operators.index)))


def _of_budget(tables: Tables, name: str, table: str) -> float:
    """Number of the rows of a budget, in a table with a row for each SubNet of each budget."""
    return float((tables.needed(table)["budget"] == name).sum())


def _budget_confirmed(tables: Tables, name: str) -> float:
    confirmed = tables.needed("confirmed")
    return float((confirmed["met"].astype(bool) & (confirmed["budget"] == name)).sum())


def _round_entrants(tables: Tables, row: str) -> float:
    """SubNets of a budget in a round of the race (``round|budget``)."""
    rounds, (number, _, name) = tables.needed("polish"), row.partition("|")
    rows = rounds["round"] == number
    return float(sum(name in str(budgets).split() for budgets in rounds.loc[rows, "budgets"]))


def _over_budget(tables: Tables, row: str) -> float:
    compared = tables.compared
    return compared.number(row, tables.cost.reached) / compared.number(row, tables.cost.budget) - 1


def _expected_within_5(validation: pd.DataFrame) -> float:
    expected = expected_from_others(validation)
    return NAN if expected is None else float(((expected / validation["measured_ms"] - 1).abs() <= 0.05).mean())


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
    "latency_tau": _of(
        "validation",
        "Kendall's tau of predicted and measured latency",
        lambda t: kendall(t["predicted_ms"], t["measured_ms"]),
    ),
    "latency_within_5": _of(
        "validation",
        "share of SubNets with a relative error of at most 5 %",
        lambda t: (t["relative_error"].abs() <= 0.05).mean(),
    ),
    "latency_expected_within_5": _of(
        "validation",
        "share of SubNets with an error of at most 5 % of what the others say that each is expected to take",
        _expected_within_5,
    ),
    "latency_within_10": _of(
        "validation",
        "share of SubNets with a relative error of at most 10 %",
        lambda t: (t["relative_error"].abs() <= 0.10).mean(),
    ),
    "latency_promise": Derivation(
        ("validation", "configuration"), "share of SubNets predicted as well as promised", _within_promise
    ),
    "latency_median_error": _of(
        "validation", "median of the absolute relative error", lambda t: t["relative_error"].abs().median()
    ),
    "latency_raw_error": _of(
        "validation",
        "median of the absolute relative error, without correction of the machine's drift since profiling",
        lambda t: t["raw_error"].abs().median(),
    ),
    "latency_bias": _of("validation", "mean of the relative error", lambda t: t["relative_error"].mean()),
    "latency_noise_floor": _of("validation", "median noise floor", lambda t: t["noise_floor"].median()),
    "latency_subnets": _of("validation", "SubNets measured", len),
    "accuracy_tau": _of(
        "accuracy_validation",
        "Kendall's tau of predicted and measured {mean}",
        lambda t: kendall(t["predicted"], t["measured"]),
    ),
    "accuracy_tau_error": _of(
        "accuracy_validation",
        "standard error of this tau over draws of SubNets (jackknife)",
        accuracy_intervals.tau_error,
    ),
    "accuracy_tau_by_chance": _of(
        "accuracy_validation",
        "standard deviation of Kendall's tau of as many unrelated numbers",
        accuracy_intervals.tau_by_chance,
    ),
    "accuracy_ceiling": _of(
        "accuracy_validation",
        "Kendall's tau of the true {mean} and the measured one, by the noise of the measurements",
        accuracy_intervals.tau_ceiling,
    ),
    "accuracy_coverage": _of(
        "accuracy_validation",
        "share of SubNets whose measured {mean} is within the 80 % interval, up to a shift that all have in common",
        accuracy_intervals.covered,
    ),
    "accuracy_coverage_error": _of(
        "accuracy_validation",
        "standard error of the share of as many SubNets that right intervals would cover",
        accuracy_intervals.covered_error,
    ),
    "accuracy_mean_error": _of(
        "accuracy_validation",
        "mean of the absolute difference, in points",
        lambda t: (t["predicted"] - t["measured"]).abs().mean(),
    ),
    "accuracy_bias": _of(
        "accuracy_validation",
        "mean of predicted minus measured, in points",
        lambda t: (t["predicted"] - t["measured"]).mean(),
    ),
    "accuracy_subnets": _of("accuracy_validation", "SubNets measured", len),
    "front_subnets": _of("pareto", "SubNets on the front", len),
    "lut_operators": Derivation(("lut", "operators"), "operators of the space that were measured", _lut_operators),
    "lut_precision": _of(
        "lut",
        "median of the relative standard error",
        lambda t: (t["standard_error"] / t["latency_ms"].where(t["latency_ms"] > 0)).median(),
    ),
    "operator_places": _of("operators", "places that use the operators", lambda t: t["places"].sum()),
    "sensitivity_rows": _of("sensitivity", "modifications measured", len),
    "sensitivity_error": _of("sensitivity", "median standard error, in points", lambda t: t["standard_error"].median()),
    "total_seconds": _of("timings", "all stages", lambda t: t["seconds"].sum()),
    "stage_share": Derivation(("timings",), "share of all stages", _stage_share),
    "speedup": _compared("{cost} of the reference over {cost} of this network", lambda c, row: c.speedup(row).value),
    "accuracy_change": _compared(
        "{score} minus that of the reference, in points", lambda c, row: c.accuracy_change(row).value
    ),
    "accuracy_change_error": _compared(
        "standard error of that difference: both see the same images", lambda c, row: c.accuracy_change(row).error
    ),
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
    "budgets_met": _compared("budgets that are kept when measured", lambda c, _: len(c.budgets) - len(c.missed)),
    "budgets_measured": _compared("budgets of SubNets that were measured", lambda c, _: len(c.budgets)),
    "over_budget": Derivation(("summary",), "measured {cost} over the budget, minus one", _over_budget),
    "budget_candidates": Derivation(
        ("candidates",), "SubNets evaluated for this budget", partial(_of_budget, table="candidates")
    ),
    "budget_confirmed": Derivation(
        ("confirmed",), "SubNets that meet this budget, as measured, with the probability asked for", _budget_confirmed
    ),
    "round_entrants": Derivation(("polish",), "SubNets of this budget in this round of the race", _round_entrants),
    "contribution": Derivation(("contributors",), "share of the SubNet's predicted latency", _contribution),
}
