"""Sections ``measure``, ``confirm`` and ``compare`` of the configuration: what is timed as a whole, and how long."""

from typing import Annotated

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import Section
from autotailor.values import AboveZero, Bound, Natural, UnfitError

Rounds = Annotated[int, Bound(ge=2, le=100, expected="2 to 100 rounds (one has no standard error)")]
Seconds = Annotated[float, Bound(gt=0, expected="a positive number of seconds, for instance 1")]


class EffortError(AutoTailorError):
    """The section ``measure`` or ``confirm`` is invalid."""


class Effort(Section, of="measure", error=EffortError):
    """Section ``measure``.

    Attributes:
        rounds: how often the exported SubNets and the original network are timed. The standard error is that of the
            mean of the rounds.
        seconds: seconds for which each network is timed in each round.
    """

    rounds: Rounds = 5
    seconds: Seconds = 1.0


class ConfirmEffort(Section, of="confirm", error=EffortError):
    """Section ``confirm``.

    Attributes:
        rounds: how often the candidates of each budget are timed, before any of them is polished.
        seconds: seconds for which each of them is timed in each round.
        attempts: further SubNets of the front that are timed for a budget where the search's choice misses it. While
            none meets it, the last one is the fastest. With 0 only candidates are timed.
        repeated: SubNets of the rule ``validate`` that are timed again, the largest and the smallest first, which tells
            how far sessions of measuring differ (see ``search.session_noise``).
    """

    rounds: Rounds = 3
    seconds: Seconds = 0.3
    attempts: Annotated[int, Bound(ge=0, le=100)] = 4
    repeated: Annotated[int, Bound(ge=0, le=100)] = 5


class ComparisonError(AutoTailorError):
    """The section ``compare`` is invalid."""


class CompareConfig(Section, of="compare", error=ComparisonError):
    """Section ``compare``.

    Attributes:
        names: exported SubNets whose latency the uniformly scaled networks match. An empty list means all but the
            largest.
        widths: widths to choose from, as shares of the original network's.
        seeds: each scaled network is trained once for each seed.
        lrs: learning rates that are tried for each scaled network. The validation set decides.
    """

    names: tuple[str, ...]
    widths: tuple[Annotated[float, Bound(gt=0, le=1)], ...]
    seeds: tuple[Natural, ...]
    lrs: tuple[AboveZero, ...]

    def __post_init__(self) -> None:
        for key in ("widths", "seeds", "lrs"):
            if not getattr(self, key):
                raise UnfitError(key, "expected a list with at least one value, not an empty one")
        for key in ("names", "seeds", "lrs"):
            if len(set(values := getattr(self, key))) < len(values):
                raise UnfitError(key, f"{list(values)} lists a value twice")
