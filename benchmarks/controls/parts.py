"""The parts of ``fronts.py``: one network for each method and budget, trained once and then read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from controls.budgets import contests
from controls.methods import Control, Methods
from controls.outcome import Outcome
from controls.run import Run
from controls.start import begin
from controls.tuning import best, tune

ORIGINAL, TRAINED_ON = "original", "trained on"
INHERITED, POLISHED, ALONE, SCALED, SLICED = "inherited", "polished", "alone", "scaled", "sliced"
SCALED_AS_FAST, SLICED_AS_FAST = "scaled as fast", "sliced as fast"
SCALED_BRIEFLY, SLICED_BRIEFLY = "scaled briefly", "sliced briefly"
SCALED_IN_BUDGET = "scaled in budget"
BY_LATENCY = (SCALED_AS_FAST, SLICED_AS_FAST, SCALED_BRIEFLY, SLICED_BRIEFLY, SCALED_IN_BUDGET)
"""Methods whose networks are chosen by measured latency."""
OF_BUDGET = (INHERITED, POLISHED, ALONE, SCALED, SLICED, *BY_LATENCY)
"""Methods with one network for each budget."""
METHODS = (ORIGINAL, TRAINED_ON, *OF_BUDGET)
WHOLE = 100
"""Stands for the budget of the original network."""
Trial = Callable[[float, Path], Outcome]


@dataclass(frozen=True, eq=False)
class Part:
    """One network: model, seed, method, budget in percent of the original's latency, and what became of it."""

    model: str
    seed: int
    method: str
    budget: int
    outcome: Outcome


def file_of(run: Run, method: str, budget: int) -> Path:
    """Where the outcome of a part lies."""
    return run.parts / f"{method.replace(' ', '_')}_{budget}.json"


def finished(run: Run, budgets: Sequence[int]) -> Iterator[Part]:
    """The parts that lie in the folder of a run."""
    for budget in (WHOLE, *sorted(budgets)):
        for method in METHODS:
            path = file_of(run, method, budget)
            if path.is_file():
                yield Part(run.model, run.seed, method, budget, Outcome.read(path))


def train_missing(run: Run, budgets: Sequence[int], methods: Sequence[str]) -> None:
    """Trains the networks of a run that are not finished, budget after budget; each outcome is written at once.

    Args:
        run: the model and seed, prepared.
        budgets: percent; a budget that no SubNet reaches is left out.
        methods: of ``METHODS``. Those that follow the polished SubNet train it as well.
    """
    made = _Parts(run, Methods(run))
    whole = {ORIGINAL: made.original, TRAINED_ON: made.trained_on}
    for method in [method for method in whole if method in methods]:
        whole[method]()
    reached = contests(run)
    start = cache(lambda: begin(run, reached))
    for budget in [budget for budget in budgets if budget in reached]:
        contest = reached[budget]
        if INHERITED in methods:
            made.once(INHERITED, budget, lambda contest=contest: made.methods.inherited(contest))
        following = [method for method in _followers(run) if method in methods]
        if POLISHED in methods or following:
            polished = made.tuned(
                POLISHED,
                budget,
                lambda lr, workdir, contest=contest: made.methods.polished(contest, start(), lr, workdir),
                run.polish.lr,
            )
            for method in following:
                made.control(method, budget, lambda m=method, b=budget, p=polished: made.following(m, b, p))


def measure(run: Run, budgets: Sequence[int], methods: Sequence[str]) -> None:
    """Measures the networks that are chosen by latency, where the polished SubNet is finished; trains nothing."""
    made = _Parts(run, Methods(run))
    for part in finished(run, budgets):
        if part.method == POLISHED:
            for method in [method for method in _followers(run) if method in BY_LATENCY and method in methods]:
                made.following(method, part.budget, part.outcome)


def _followers(run: Run) -> tuple[str, ...]:
    """Methods whose network follows the polished SubNet; where MACs stand for latency, none is chosen by latency."""
    return (ALONE, SCALED, SLICED, *(BY_LATENCY if run.cost_name == "latency" else ()))


@dataclass(frozen=True)
class _Parts:
    """Makes parts, and reads those that are finished."""

    run: Run
    methods: Methods

    def original(self) -> None:
        self.once(ORIGINAL, WHOLE, self.methods.original)

    def trained_on(self) -> None:
        self.control(TRAINED_ON, WHOLE, self.methods.trained_on)

    def following(self, method: str, budget: int, polished: Outcome) -> Control:
        """The control of a polished SubNet."""
        make = getattr(self.methods, method.replace(" ", "_"))
        if method not in BY_LATENCY:
            return make(polished)
        folder = file_of(self.run, f"latencies of {method.split()[0]}", budget).with_suffix("")
        return make(polished, folder, budget / WHOLE) if method == SCALED_IN_BUDGET else make(polished, folder)

    def once(self, method: str, budget: int, make: Callable[[], Outcome]) -> Outcome:
        """A part without training."""
        path = file_of(self.run, method, budget)
        if not path.is_file():
            make().write(path)
        return Outcome.read(path)

    def control(self, method: str, budget: int, make: Callable[[], Control]) -> None:
        """A part that is trained alone, at the best learning rate."""
        if file_of(self.run, method, budget).is_file():
            return
        control = make()
        self.tuned(method, budget, lambda lr, workdir: self.methods.train(control, lr, workdir), control.lr)

    def tuned(self, method: str, budget: int, trial: Trial, lr: float) -> Outcome:
        """A part at the best learning rate; trials that are finished are read."""
        path = file_of(self.run, method, budget)
        if path.is_file():
            return Outcome.read(path)
        trials = path.with_suffix("")
        outcomes: dict[float, Outcome] = {}

        def accuracy(lr: float) -> float:
            outcomes[lr] = once(trials / f"lr_{lr:.3g}.json", trials / f"lr_{lr:.3g}", lr, trial)
            return outcomes[lr].validation

        tried = tune(accuracy, lr)
        found = replace(outcomes[best(tried)], lr=best(tried), tried=tuple(tried.items()))
        found.write(path)
        return found


def once(path: Path, workdir: Path, lr: float, trial: Trial) -> Outcome:
    """The outcome of one learning rate, from its file or by training; then the checkpoints are removed."""
    if not path.is_file():
        trial(lr, workdir).write(path)
        shutil.rmtree(workdir, ignore_errors=True)
    return Outcome.read(path)
