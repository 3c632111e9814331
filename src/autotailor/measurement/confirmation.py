"""Measures the SubNets that may be exported before any of them is polished, and replaces those that miss their budget.

A latency does not need trained weights, and polishing takes long. So the candidates of all budgets are measured first.
A measurement and the forecast together say how likely a SubNet meets its budget when it is measured again, in another
session. Some SubNets that ``validate`` has measured are measured along, because they tell how far sessions differ.

The candidates are sure to meet their budgets, so that the worse the predictions, the more of a budget they leave. A
measurement is surer than a prediction. So SubNets of the front that meet a budget only perhaps are measured as well.

Only those SubNets that meet a budget with the confidence asked for compete for the budget. Where the search's choice is
not among them, further SubNets of the front are measured: each is the most accurate one that would meet the budget if
it were off by the factor by which the closest SubNet that misses is off. The attempts end where the next one promises
no more accuracy than a SubNet that meets the budget. While there is none, the last attempt is the cheapest SubNet of
the front.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from autotailor.artifacts import atomic, read_json, write_json
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.supernet import SuperNet
from autotailor.measurement.config import ConfirmEffort
from autotailor.measurement.sessions import Timed, timed
from autotailor.measurement.trial import Time, Trial
from autotailor.prediction.measured import reconciled
from autotailor.profiling import LUT, DeviceConfig, measure_subnets
from autotailor.profiling.networks.timing import NETWORKS_PER_BATCH
from autotailor.search.choice import Candidates, Measure
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import Limits
from autotailor.search.robust.forecast import LatencyForecast, Timing

if TYPE_CHECKING:
    import pandas as pd

BOLDER = (0.5, 0.8)
"""Probabilities of meeting a budget of the SubNets that are measured beside its candidates, which are surer."""
LATENCIES = "latencies.measured"
"""File of a work folder. A finished rule keeps no file of this suffix (``work.KEPT``), so that a rule which a user
forces to run again, for instance on a machine that is quiet by now, measures again."""


@dataclass(frozen=True, eq=False)
class Confirmation:
    """What was measured before polishing.

    Attributes:
        subnets: chosen SubNets by name of the budget.
        table: ``confirmed.csv``, one row for each SubNet that was tried for a budget, and each that meets it: the
            columns of ``candidates.csv`` and ``MEASURED``. ``probability`` is that of meeting the budget in another
            measurement; ``met`` says whether it is as high as asked.
    """

    subnets: Mapping[str, SubNet]
    table: pd.DataFrame

    def write(self, path: Path) -> None:
        """Writes ``confirmed.csv``; an interrupted write leaves no file."""
        with atomic(path) as temporary:
            self.table.to_csv(temporary, index=False)

    def verdict(self) -> str:
        """How many SubNets were measured, and for how many budgets one meets its budget."""
        chosen = self.table[self.table["chosen"]]
        return (
            f"{self.table['subnet'].nunique()} SubNets measured before polishing: {int(chosen['met'].sum())} of "
            f"{len(chosen)} budgets are met with the probability of search.confidence"
        )


def confirm(
    objectives: Objectives,
    front: Front,
    candidates: Candidates,
    forecast: LatencyForecast,
    time: Time | None,
    measure: Measure,
    attempts: int,
    beside: Mapping[str, Limits] = MappingProxyType({}),
    again: Iterable[SubNet] = (),
    earlier: Mapping[str, Sequence[Timing]] = MappingProxyType({}),
    shares: Mapping[str, float] = MappingProxyType({}),
    bolder: Sequence[float] = (),
) -> Confirmation:
    """Measures the candidates of all budgets, and further SubNets where all candidates of a budget miss it.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search, from which further SubNets are taken.
        candidates: of the search.
        forecast: of measured costs.
        time: measures latencies; with None nothing is measured, and candidates are passed on as predicted.
        measure: measures the accuracy of further SubNets.
        attempts: how many further SubNets are measured for a budget at most, where the search's choice misses it.
        beside: name of a budget to its limits of further metrics, which every SubNet that competes for it keeps.
        again: SubNets that are measured along, as far as another session has measured them.
        earlier: id of a SubNet to what sessions after that of ``validation.csv`` have measured. These SubNets are not
            measured unless they are among ``again``.
        shares: budgets that are shares of the largest SubNet's latency (``budget_shares``). They are judged by what
            SubNets take of the largest SubNet's latency in the same rounds.
        bolder: for each budget the best SubNets of the front that are expected to meet it with these probabilities are
            measured with the candidates.
    """
    trial = Trial(objectives, front, candidates, forecast, time, beside, earlier, shares)
    trial.begin(again, bolder)
    for left in range(attempts if time is not None else 0, 0, -1):
        if not trial.attempt(is_last=left == 1):
            break
    late = [subnet for subnet in trial.everyone if subnet.id not in candidates.accuracies]
    accuracies = reconciled({**candidates.accuracies, **measure(late)}) if late else candidates.accuracies
    chosen = {name: trial.choose(name, accuracies) for name in candidates.limits}
    return Confirmation(chosen, trial.table(accuracies, chosen))


def timing(net: SuperNet, device: DeviceConfig, lut: LUT, effort: ConfirmEffort, folder: Path) -> Time:
    """Measures SubNets on a device, each as the mean of the rounds; see ``remembered``.

    The largest SubNet is measured in each batch, so that the share that a SubNet takes of its latency is that of the
    same seconds.

    Args:
        net: the SuperNet.
        device: on which SubNets are timed.
        lut: its anchor corrects the machine's drift.
        effort: how often and for how long.
        folder: of converted networks, and of the file that keeps what was measured.
    """
    whole, most = largest(net.space), NETWORKS_PER_BATCH - 1

    def time(subnets: Sequence[SubNet]) -> Sequence[Timed]:
        others = [subnet for subnet in subnets if subnet != whole]
        times: dict[str, Timed] = {}
        for begin in range(0, max(len(others), 1), most):
            batch = [whole, *others[begin : begin + most]]
            rounds, seconds, work = effort.rounds, effort.seconds, folder / "networks"
            measured = measure_subnets(net, batch, device, work, lut=lut, rounds=rounds, seconds_each=seconds)
            times |= timed(measured, whole.id)
        return [times[subnet.id] for subnet in subnets]

    return remembered(time, folder / LATENCIES)


def remembered(time: Time, path: Path) -> Time:
    """The same measurement, which keeps what it has found in a file: an interrupted rule does not measure it again."""
    times = {key: Timed(**each) for key, each in read_json(path)["found"].items()} if path.exists() else {}

    def measure(subnets: Sequence[SubNet]) -> Sequence[Timed]:
        fresh = [subnet for subnet in subnets if subnet.id not in times]
        if fresh:
            times.update({subnet.id: each for subnet, each in zip(fresh, time(fresh), strict=True)})
            write_json(path, {"found": {key: vars(each) for key, each in times.items()}})
        return [times[subnet.id] for subnet in subnets]

    return measure
