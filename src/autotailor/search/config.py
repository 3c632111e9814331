"""Parameters of the search: section ``search`` of the configuration."""

from dataclasses import field
from typing import Annotated

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import Section
from autotailor.values import Bound, Natural, NotNegative, OneOf, Positive

EXACT = ("auto", "always", "never")


class SearchError(AutoTailorError):
    """The metrics, the space or the configuration of a search are invalid, or no SubNet meets a budget."""


class SearchConfig(Section, of="search", error=SearchError):
    """How to search.

    Attributes:
        seed: of the genetic search and its random start.
        population: individuals of NSGA-II.
        generations: generations of NSGA-II.
        crossover_eta: distribution index of the simulated binary crossover. Null takes uniform crossover, which finds
            fronts in less time where variables have few choices.
        mutation_eta: distribution index of the polynomial mutation.
        beam_width: states that the beam search keeps at each step. 0 starts the genetic search from random SubNets
            alone.
        points: latency budgets spread over the reachable range, at which the genetic front is compared with the exact
            one; the most SubNets that ``autotailor front`` shows.
        candidates: SubNets for each exported budget that are measured on the validation set before one is chosen. 1
            trusts the prediction.
        confidence: probability with which a SubNet is to meet its budget when it is measured. The errors of
            ``validation.csv``, the device's noise and the standard errors of the LUT say how far below the budget its
            predicted latency must be. With 0.5 it meets the budget as likely as not.
        session_noise: relative standard deviation of a SubNet's latency, in units of the anchor, from one session of
            measuring to the next, before this device has told its own: SubNets that the rules ``validate`` and
            ``confirm`` both measure count beside it. It is also that of a SubNet's latency over the largest SubNet's,
            where budgets are shares. With 0, sessions do not differ.
        evaluations: SubNets along the front that are evaluated on the validation set before the search, so that the
            prediction is best where SubNets are chosen. It has no effect with ``sensitivity.evaluations=0``.
        regret: points of accuracy. The evaluations along the front end where the choice at each budget is expected to
            lose no more.
        exact: the exact front is computed where the space allows it (``auto``), or else the run fails (``always``), or
            it is left out (``never``).
        exact_points: longest partial front of the exact search. Longer ones are thinned, and the run says so.
        exact_table: most entries of one table of the elimination.
        name: name of the file in ``conf/search``, for people.
    """

    seed: Natural = 0
    population: Annotated[int, Bound(ge=4)] = 300
    generations: Positive = 100
    crossover_eta: NotNegative | None = None
    mutation_eta: NotNegative = 3.0
    beam_width: Natural = 2
    points: Annotated[int, Bound(ge=2)] = 121
    candidates: Positive = 4
    confidence: Annotated[float, Bound(ge=0.5, lt=1, expected="a probability from 0.5 to below 1")] = 0.95
    session_noise: NotNegative = 0.015
    evaluations: Natural = 40
    regret: NotNegative = 0.1
    exact: Annotated[str, OneOf(*EXACT)] = "auto"
    exact_points: Annotated[int, Bound(ge=2)] = 2000
    exact_table: Positive = 200_000
    name: str = field(default="", repr=False, compare=False)
