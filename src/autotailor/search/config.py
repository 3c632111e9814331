"""Parameters of the search: section ``search`` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotailor.search.errors import SearchError
from autotailor.sections import check_integers, check_numbers, read_section

EXACT = ("auto", "always", "never")


@dataclass(frozen=True)
class SearchConfig:
    """How to search.

    Attributes:
        seed: seed of the genetic search and of its random start.
        population: individuals of NSGA-II.
        generations: generations of NSGA-II.
        crossover_eta: distribution index of simulated binary crossover (SBX); None for uniform crossover, in which a
            child takes each choice from one of its parents.
        mutation_eta: distribution index of polynomial mutation (PM).
        beam_width: SubNets that the beam search keeps at each step; 0 starts from random SubNets alone.
        points: budgets spread over the reachable range, at which the genetic front is compared with the exact one;
            fronts that are asked for of a finished run have at most one SubNet for each.
        candidates: SubNets per exported budget that are measured on the validation set before one is chosen; with 1,
            the SubNet with the best prediction is exported.
        confidence: probability with which a SubNet is to meet its budget when it is measured; 0.5 leaves it to chance.
        session_noise: relative standard deviation of a SubNet's latency, in units of the anchor, from one session of
            measuring to the next, before this device has told its own, and that of its latency over the largest
            SubNet's; 0: sessions do not differ.
        evaluations: SubNets along the front that are evaluated before the search, so that the prediction is best where
            SubNets are chosen; it has no effect where the prediction is the sum of single drops.
        regret: points of accuracy; these evaluations end where the choice at each budget is expected to lose no more.
        exact: ``auto`` computes the exact front where the space allows it, ``always`` fails where it does not,
            ``never`` leaves the exact front out.
        exact_points: largest partial front of the exact search; longer ones are thinned, and the error is reported.
        exact_table: largest elimination table, in entries, that the exact search may build.
    """

    seed: int = 0
    population: int = 300
    generations: int = 100
    crossover_eta: float | None = None
    mutation_eta: float = 3.0
    beam_width: int = 2
    points: int = 121
    candidates: int = 4
    confidence: float = 0.95
    session_noise: float = 0.015
    evaluations: int = 40
    regret: float = 0.1
    exact: str = "auto"
    exact_points: int = 2000
    exact_table: int = 200_000

    def __post_init__(self) -> None:
        minimum = {
            "seed": 0,
            "population": 4,
            "generations": 1,
            "beam_width": 0,
            "points": 2,
            "candidates": 1,
            "evaluations": 0,
            "exact_points": 2,
            "exact_table": 1,
        }
        check_integers(self, minimum, "search", SearchError)
        check_numbers(self, {"regret": 0.0, "confidence": 0.0, "session_noise": 0.0}, "search", SearchError)
        etas = {"mutation_eta": 0.0} | ({} if self.crossover_eta is None else {"crossover_eta": 0.0})
        check_numbers(self, etas, "search", SearchError)
        if not 0.5 <= self.confidence < 1:
            raise SearchError(
                f"search.confidence: {self.confidence}, expected a probability from 0.5 to below 1; change it in "
                "conf/search"
            )
        if self.exact not in EXACT:
            raise SearchError(
                f"search.exact: {self.exact!r}, expected one of {', '.join(EXACT)}; change it in conf/search"
            )

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> SearchConfig:
        """Reads the section ``search``; missing keys have their default value, ``name`` is ignored."""
        values = {key: value for key, value in section.items() if key != "name"}
        return read_section(cls, values, "search", SearchError)
