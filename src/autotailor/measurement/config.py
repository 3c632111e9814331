"""Section ``compare`` of the configuration."""

from typing import Annotated

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import Section
from autotailor.values import AboveZero, Bound, Natural, UnfitError


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
