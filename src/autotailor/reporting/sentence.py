"""The answer of a run in one sentence, and what weakens it: the head of the report and the end of the console."""

import math
from dataclasses import dataclass

import pandas as pd

from autotailor.reporting.comparison import LARGEST, ORIGINAL, Comparison
from autotailor.search.cost import LATENCY, Cost
from autotailor.task.scores import ACCURACY, AGREEMENT, Score

NAMED = 3
"""Missed budgets that a caveat names at most."""
DOUBTFUL = 0.05
"""Relative standard error of a speed-up above which the sentence alone would promise too much."""

COARSE = 2.0
"""Standard error of a change of accuracy, in points, above which a test set hides losses that a person would mind."""


@dataclass(frozen=True)
class Answer:
    """What a run has found.

    Attributes:
        subnet: name of the SubNet that the sentence is about.
        sentence: one sentence; names stand between backticks.
        caveats: one sentence each, the weightiest first: what was missed, not measured, or too noisy to judge.
    """

    subnet: str
    sentence: str
    caveats: tuple[str, ...]


def answer(summary: pd.DataFrame, device: str, score: Score = ACCURACY, cost: Cost = LATENCY) -> Answer:
    """The answer of a run: how much faster and how much more accurate the best SubNet at half the cost is.

    Args:
        summary: ``summary.csv``.
        device: name of the device.
        score: the name of the share of right answers.
        cost: what budgets limit.
    """
    comparison = Comparison(summary.set_index(summary["name"].astype(str)), cost)
    name = comparison.featured
    about = _whom(comparison)
    if name == comparison.reference:
        return Answer(name, f"The run has exported `{name}` alone, with nothing to compare it with.", ())
    verb, cheaper = _cheaper(comparison, device, about)
    sentence = f"`{name}` {verb} {cheaper}{_more_accurate(comparison, score, about, shares_verb=verb == 'is')}."
    return Answer(name, sentence, tuple(_caveats(comparison, device, score)))


def _whom(comparison: Comparison) -> str:
    """The reference, for people."""
    named = {ORIGINAL: "your network", LARGEST: "the largest SubNet"}
    return named.get(comparison.reference, f"`{comparison.reference}`")


def _cheaper(comparison: Comparison, device: str, whom: str) -> tuple[str, str]:
    """The verb of the sentence, and what follows it about the cost."""
    speedup = comparison.speedup(comparison.featured)
    if not comparison.cost.is_measured:
        return "needs", f"{_percent(1 / speedup.value)} of the {comparison.cost.title} of {whom}"
    where = f"{whom} on `{device}`"
    if not comparison.is_measured:
        return "is", f"predicted to be {_times(speedup.value)} times as fast as {where}"
    if not speedup.is_beyond_error(1.0):
        return "is", f"about as fast as {where}"
    if speedup.value < 1:
        return "takes", f"{_times(1 / speedup.value)} times as long as {where}"
    return "is", f"{_times(speedup.value)} times as fast as {where}"


def _more_accurate(comparison: Comparison, score: Score, whom: str, *, shares_verb: bool) -> str:
    """The part of the sentence about accuracy; "" where nothing is known."""
    name = comparison.featured
    if score.compares:
        agreement = comparison.number(name, comparison.accuracy_column)
        error = comparison.number(name, "accuracy_standard_error")
        if score.name != AGREEMENT.name:
            return f" and has {score.name} {agreement:.1f} %{_plus_minus(error)}"
        of_whom = whom if comparison.reference == ORIGINAL else "your network"
        return f" and gives the same answer as {of_whom} for {agreement:.1f} %{_plus_minus(error)} of the test pictures"
    change = comparison.accuracy_change(name)
    if math.isnan(change.value):
        return ""
    verb = "" if shares_verb else "is "
    if not change.is_beyond_error(0.0):
        difference = f"{change.value:+.1f}{_plus_minus(change.error)} points".replace("-", "−")
        if change.error > COARSE:
            return f" and {verb}as accurate as far as so few test pictures can tell ({difference})"
        return f" and {verb}as accurate within the error of the test set ({difference})"
    points = f"{abs(change.value):.1f}" if abs(change.value) >= 0.05 else f"{abs(change.value):.2f}"
    joined, comparative = ("and", "more") if change.value > 0 else ("but", "less")
    return f" {joined} {verb}{points}{_plus_minus(change.error)} points {comparative} accurate"


def _caveats(comparison: Comparison, device: str, score: Score) -> list[str]:
    """What weakens the sentence."""
    caveats = [_missed(comparison)] if comparison.missed else []
    speedup = comparison.speedup(comparison.featured)
    if not comparison.cost.is_measured:
        caveats.append(f"Latency is unknown: the run counted {comparison.cost.title} and had no device.")
    elif not comparison.is_measured:
        caveats.append(f"Latencies are predicted from the table of operators, and not measured on `{device}`.")
    elif not speedup.is_beyond_error(1.0) and comparison.is_whole(comparison.featured):
        caveats.append(f"`{comparison.featured}` has the architecture of your network, and takes as long.")
    elif not speedup.is_beyond_error(1.0):
        caveats.append(
            f"The measurements are too noisy to tell whether the SubNet is faster or slower: {speedup.value:.2f} "
            f"±{speedup.error:.2f} times as fast. Measure again on a quiet device."
        )
    elif speedup.error > DOUBTFUL * speedup.value:
        caveats.append(
            f"The measurements are noisy: {speedup.value:.1f} ±{speedup.error:.1f} times as fast. Measure again on a "
            "quiet device."
        )
    if comparison.accuracy_column != "accuracy_measured":
        caveats.append(f"The {score.mean} is predicted, and not measured on the test set.")
    elif not score.compares and (coarse := _coarse(comparison)):
        caveats.append(coarse)
    if score.meaning:
        caveats.append(score.meaning)
    return [*caveats, *(_same(comparison, names, score) for names in comparison.repeated)]


def _same(comparison: Comparison, names: tuple[str, ...], score: Score) -> str:
    """That several budgets have got one SubNet, and why where one reason is known."""
    tightest, *others = names
    listed, are = " and ".join(f"`{name}`" for name in others), "is" if len(others) == 1 else "are"
    same = f"{listed} {are} the same SubNet as `{tightest}`"
    if comparison.is_whole(tightest):
        return f"{same}, the largest one."
    budgets = [comparison.number(name, "budget_ms") for name in names]
    if min(budgets) == max(budgets):
        return f"{same}: the budgets are equal."
    costlier = "slower" if comparison.cost.is_measured else "larger"
    return f"{same}: on the validation set no {costlier} candidate had a higher {score.mean}."


def _coarse(comparison: Comparison) -> str:
    """That the test set hides losses that a person would mind; "" where it does not, or the change is beyond it."""
    change = comparison.accuracy_change(comparison.featured)
    if not change.error > COARSE or change.is_beyond_error(0.0):
        return ""
    return (
        f"The test set has too few pictures to tell less than {2 * change.error:.0f} points of accuracy from none. "
        "Test the SubNet on more pictures before it replaces your network."
    )


def _missed(comparison: Comparison) -> str:
    """The budgets that are missed, with by how much."""
    missed, budgets = comparison.missed, comparison.budgets
    named = ", ".join(f"`{name}`{_by_how_much(comparison, name)}" for name in missed[:NAMED])
    more = f" and {len(missed) - NAMED} more" if len(missed) > NAMED else ""
    are = "is" if len(missed) == 1 else "are"
    return (
        f"{len(missed)} of {len(budgets)} budgets {are} missed when measured: {named}{more}. Measure again on a quiet "
        "device, or raise search.confidence."
    )


def _by_how_much(comparison: Comparison, name: str) -> str:
    budget = comparison.number(name, comparison.cost.budget)
    over = comparison.number(name, comparison.cost.reached) / budget - 1
    return "" if math.isnan(over) else f" by {over:.1%}".replace("%", " %")


def _times(ratio: float) -> str:
    """A ratio with as many digits as a person wants: 1.07, 2.1, 14."""
    return f"{ratio:.2f}" if ratio < 1.15 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def _plus_minus(error: float) -> str:
    return "" if math.isnan(error) else f" ±{error:.1f}"
