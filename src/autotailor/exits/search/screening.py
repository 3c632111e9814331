"""SubNets of the front with exits, before any of them is polished.

A SubNet that is too slow for a budget may keep it in the mean over pictures, with exits. Which one is best is found out
with little: heads are solved in closed form on the weights that SubNets inherit, costs are predicted, and SubNet, exits
and thresholds are chosen together, by folds of the validation set. What the chosen SubNet costs as a whole becomes the
budget of whole networks, with which search, confirmation, polishing and export go on as with any other. The rule
``exits`` then trains the heads of what was exported, and chooses thresholds anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.accuracy import CalibrationConfig
from autotailor.compute.accelerator import resolve
from autotailor.data import DataSplits
from autotailor.exits.answers import Costs
from autotailor.exits.choice import Candidate, Chooser, choose, read_limits
from autotailor.exits.config import ExitsConfig
from autotailor.exits.costs import WithExits
from autotailor.exits.making import add_heads
from autotailor.export import deployable
from autotailor.finetuning.polishing import Exported, PolishConfig
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.supernet import SuperNet
from autotailor.search import Cost, Front, LatencyForecast, SearchError
from autotailor.search.robust.forecast import ROUNDING

logger = logging.getLogger(__name__)
SUBNETS = 24
"""SubNets of the front that get heads, spread evenly over the costs from the tightest budget to the largest SubNet."""
Price = Callable[[SubNet, WithExits], Costs]
"""From a SubNet with its exits to what its parts cost."""


def along(front: Front, least: float, count: int = SUBNETS) -> list[SubNet]:
    """SubNets of a front from a cost to the largest SubNet, which is the last one."""
    first = max(int(np.searchsorted(front.cost, least * (1 + ROUNDING), "right")) - 1, 0)
    costlier = front.take(np.arange(first, len(front)))
    return list(dict.fromkeys([*costlier.spread(count).subnets, largest(front.space)]))


@dataclass(frozen=True, eq=False)
class Screening:
    """Gives SubNets heads that are solved in closed form.

    Attributes:
        net: the SuperNet.
        data: training pictures calibrate and solve, validation pictures are answered.
        config: of the exits.
        calibration: of BatchNorm.
        price: says what parts cost.
        work: folder of checkpoints.
        accelerator: that computes.
    """

    net: SuperNet
    data: DataSplits
    config: ExitsConfig
    calibration: CalibrationConfig
    price: Price
    work: Path
    accelerator: str = "auto"

    def candidates(self, subnets: Sequence[SubNet]) -> dict[SubNet, Candidate]:
        """What SubNets answer with inherited weights; ``test`` of each is the same as ``validation``."""
        config, polish = replace(self.config, images=0), PolishConfig(accelerator=self.accelerator)
        module, candidates = self.net.module().eval().to(resolve(self.accelerator)), {}
        for number, subnet in enumerate(subnets, 1):
            graph = deployable(self.net, Exported(subnet), module, self.data, self.calibration).graph
            place = self.work / subnet.id
            headed = add_heads(self.net, subnet, graph, self.data, config, polish, place, is_tested=False)
            seen, costs = headed.validation, self.price(subnet, headed.network)
            candidates[subnet] = Candidate(subnet.id, headed.names, costs, seen, seen)
            logger.info("SubNets with exits: %d of %d", number, len(subnets))
        return candidates


def best_with_exits(
    candidates: Mapping[SubNet, Candidate], groups: npt.NDArray[np.int64], expected: float, worst: float
) -> SubNet | None:
    """The SubNet whose thresholds are best on pictures that did not choose them; None where none keeps the limits.

    Args:
        candidates: SubNets with what their exits answer; each competes without exits as well.
        groups: base picture of each validation picture.
        expected: what a picture may cost in the mean.
        worst: what a picture may cost at most.
    """
    pairs = [(subnet, each) for subnet, own in candidates.items() for each in (own, own.alone)]
    choice = choose([Chooser(each, groups, worst) for _, each in pairs], expected)
    return next((subnet for subnet, each in pairs if choice is not None and each is choice.candidate), None)


def whole_budgets(
    budgets: Mapping[str, Mapping[str, float | str]],
    front: Front,
    whole: float,
    kind: Cost,
    forecast: LatencyForecast,
    screening: Screening,
) -> dict[str, float]:
    """What the SubNet of each budget of the expected cost may cost as a whole, in the unit of the cost.

    Args:
        budgets: name of a budget to its ``expected`` and ``worst``, see ``search.budgets.of_exits``.
        front: of the search.
        whole: what the largest SubNet costs.
        kind: of the cost.
        forecast: of measured costs; what it expects of the chosen SubNet meets the result.
        screening: gives SubNets heads.

    Raises:
        SearchError: no SubNet keeps a budget, with or without exits.
    """
    limits = {name: read_limits(budget, whole, kind.unit) for name, budget in budgets.items()}
    candidates = screening.candidates(along(front, min(expected for expected, _ in limits.values())))
    allowed = {}
    for name, (expected, worst) in limits.items():
        subnet = best_with_exits(candidates, screening.data.validation.groups, expected, worst)
        if subnet is None:
            raise SearchError(
                f"{name}: no SubNet, with exits or without, keeps an expected {kind.title} of {expected:.4g} "
                f"{kind.unit} and a worst one of {worst:.4g}: allow more, or ask for earlier exits (space.exits.after)"
            )
        cost = candidates[subnet].costs.whole
        allowed[name] = forecast.of(subnet, cost).quantile(forecast.confidence) * (1 + ROUNDING)
        logger.info("%s: SubNet %s, %.4g %s as a whole", name, subnet.id, cost, kind.unit)
    return allowed
