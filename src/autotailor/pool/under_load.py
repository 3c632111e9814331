"""Members for a load under which no member of a pool fits: the search runs again for latencies as they are now.

A server of the pool has learnt slowdowns theta_k of the classes of operators. An operator of the look-up table (LUT)
whose latency has the parts t_k (``classes``) then takes

    t' = f sum_k theta_k t_k,

where f turns CPU time that is expected into wall time that is not exceeded with the server's probability. With t' in
place of t, the search finds the front under this load. Nothing else is new: accuracies, LUT and weights are those of
the run. Of the SubNets of this front that meet the deadline, members are chosen as those of the pool were. The most
accurate one is the member for the load as it is; the others are for a load that grows further.

The front can differ from the pool's, because load does not slow all operators down alike. Where one factor says it all,
the fastest member of the pool is the fastest SubNet under load, too, and there is nothing to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.artifacts import ArtifactError, read_json
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space
from autotailor.pool.classes import Rates, Split
from autotailor.pool.config import PoolConfig
from autotailor.pool.exported import ExportedMember
from autotailor.pool.making import TRAINING, Evaluate, Run, facts_of, with_evaluated
from autotailor.pool.members import choose_members
from autotailor.pool.writing import DOCUMENT, Origin, write_pool
from autotailor.prediction import Measured
from autotailor.profiling import LUT, Measurement, fusion_rules
from autotailor.search import Objectives, SearchConfig, search
from autotailor.search.front import rounded_up
from autotailor.serving.errors import PoolError
from autotailor.serving.files import CLASSES

MILLISECONDS = 1000.0
MARGIN = 0.1
"""Share by which a member must fit before a server switches to it, where the server was not told another one."""
SEARCHED = "searched_under_load"
"""Key of ``pool.json``: the loads for which members were added, each with the members' SubNets."""


@dataclass(frozen=True)
class Load:
    """What a server asks of its pool, and what it knows of the load.

    Attributes:
        slowdown: of each class of operators.
        stretch: wall time that an inference does not exceed with the server's probability, over its expected CPU time.
        limit_ms: wall time that a member may take at most.
    """

    slowdown: Split
    stretch: float
    limit_ms: float

    @classmethod
    def of_status(cls, status: Mapping[str, Any], threads: int) -> Load:
        """The load in the status of a server.

        Waiting counts with its mean. A member must fit with the margin by which the server switches to better ones.

        Args:
            status: of the server.
            threads: that compute an inference, and share a quota.
        """
        load, settings = status["load"], status["settings"]
        compute, memory, fixed = (float(load[f"slowdown_{name}"]) for name in CLASSES)
        stretch = load["forecast"] * load["quantile"] * (1 + load["waiting"])
        limits = [float(settings["deadline_ms"])]
        if settings["rate"]:
            limits.append(MILLISECONDS / settings["rate"])
            quota = settings["quota"] or status["machine"].get("quota")
            if quota is not None:
                limits.append(stretch * quota / threads * MILLISECONDS / settings["rate"])
        return cls((compute, memory, fixed), stretch, min(limits) / (1 + MARGIN))

    def latencies(self, lut: LUT) -> dict[str, float]:
        """Operators' ids to their latencies under this load, in milliseconds."""
        unloaded = lut.latencies()
        rates = Rates.of([row.feature for row in lut], unloaded)
        parts = {row.feature.id: rates.split(row.feature, unloaded[row.feature.id]) for row in lut}
        return {key: self.stretch * float(np.dot(self.slowdown, split)) for key, split in parts.items()}


def find_members(
    run: Run, load: Load, config: SearchConfig, count: int, slowdown: float = PoolConfig.slowdown
) -> tuple[SubNet, ...]:
    """SubNets that meet the deadline under a load, as predicted, by rising latency.

    Args:
        run: what is known of the SubNets; its own front is not used.
        load: the load.
        config: of the search.
        count: number of SubNets at most.
        slowdown: by which the load may grow further at most.

    Raises:
        PoolError: no SubNet of the space meets the deadline.
    """
    assert run.accuracy is not None
    cost = run.net.latency(load.latencies(run.lut), fusion_rules(run.device))
    front = search(Objectives(run.accuracy.metric, cost), config).front
    fitting = np.flatnonzero(front.cost <= load.limit_ms)
    if not len(fitting):
        enough = rounded_up(float(front.cost[0]) * (1 + MARGIN))
        raise PoolError(
            f"no SubNet of the space is expected to take at most {load.limit_ms:.3g} ms under this load; the fastest "
            f"takes {front.cost[0]:.3g} ms: raise the deadline to {enough} ms, or offer "
            "smaller choices in model.space"
        )
    part = front.take(fitting)
    return part.take(choose_members(part.cost, part.accuracy, count, slowdown).rows).subnets


@dataclass(frozen=True, eq=False)
class Known:
    """The members of a pool.

    Attributes:
        subnets: the members.
        measured: latency of each on the device; None where it was not measured.
        evaluated: ids of those whose accuracy was evaluated, to the accuracy.
        document: ``pool.json``.
    """

    subnets: tuple[SubNet, ...]
    measured: tuple[Measurement | None, ...]
    evaluated: Mapping[str, Measured]
    document: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path, space: Space) -> Known:
        """Reads the members of a pool.

        Args:
            folder: of the pool.
            space: of the SuperNet that the pool was made from.

        Raises:
            PoolError: the folder has no ``pool.json`` that this version can read, or that of another SuperNet.
        """
        path = folder / DOCUMENT
        if not path.is_file():
            raise PoolError(f"{path}: there is no such file; make the pool with the rule pool first")
        try:
            document = read_json(path)
            measured = tuple(_measured(each) for each in document["members"])
            evaluated = dict(_evaluated(m) for m in document["members"] if m["accuracy"]["from"] == "evaluation")
            assignments = [each["assignment"] for each in document["members"]]
        except (ArtifactError, KeyError, TypeError) as error:
            raise PoolError(
                f"{path}: is cut, changed, or of another version; make the pool anew with the rule pool"
            ) from error
        try:
            subnets = tuple(SubNet.from_assignment(space, each) for each in assignments)
        except AutoTailorError as error:
            raise PoolError(f"{path}: its members are none of this run's SuperNet; name the run of the pool") from error
        return cls(subnets, measured, evaluated, document)


def extend(
    folder: Path,
    run: Run,
    load: Load,
    offered: Sequence[SubNet],
    origin: Origin,
    export: Callable[[SubNet], ExportedMember],
    evaluate: Evaluate | None = None,
) -> tuple[SubNet, ...]:
    """Writes a pool anew, with members for a load beside those that it has.

    The old pool stays until the new one is there. New members are not timed, because the device is under load: their
    latencies are those that the LUT predicts.

    Args:
        folder: of the pool.
        run: what is known.
        load: the load.
        offered: SubNets for it, see ``find_members``.
        origin: see ``making.origin_of``; precision and front are those of the pool.
        export: writes the files of a SubNet, or finds those of an interrupted command.
        evaluate: accuracies of members that nobody has evaluated; None leaves those at what is predicted.

    Returns:
        All members.

    Raises:
        PoolError: all are members already, or a member does not compute what the SuperNet computes.
    """
    pool = Known.read(folder, run.net.space)
    new = tuple(subnet for subnet in offered if subnet not in pool.subnets)
    if not new:
        raise PoolError(
            f"the SubNets that are expected to take at most {load.limit_ms:.3g} ms under this load are members of "
            f"{folder} already, so that a search adds none: where they miss the deadline, raise it"
        )
    subnets = (*pool.subnets, *new)
    exported = [export(subnet) for subnet in subnets]
    run = with_evaluated(replace(run, evaluated={**pool.evaluated, **run.evaluated}), subnets, evaluate)
    facts = facts_of(run, subnets, (*pool.measured, *(None for _ in new)))
    entry = {**asdict(load), "subnets": [subnet.id for subnet in new]}
    kept = {key: pool.document[key] for key in ("preparation", "front", TRAINING) if key in pool.document}
    searched = [*pool.document.get(SEARCHED, []), entry]
    origin = replace(
        origin,
        weights=run.weights,
        precision=pool.document["precision"],
        tolerance=pool.document["tolerance"],
        further={**origin.further, **kept, SEARCHED: searched},
    )
    write_pool(folder, run.net, list(zip(exported, facts, strict=True)), origin)
    return subnets


def _evaluated(member: Mapping[str, Any]) -> tuple[str, Measured]:
    """Id and accuracy of a member that was evaluated, as ``pool.json`` says it."""
    accuracy = member["accuracy"]
    return member["subnet"], Measured.alone(accuracy["value"], accuracy["standard_error"])


def _measured(member: Mapping[str, Any]) -> Measurement | None:
    """What ``pool.json`` says of a member's measured latency."""
    latency = member["latency_ms"]
    if latency["measured"] is None:
        return None
    error = latency["measured_standard_error"]
    return Measurement(member["subnet"], latency["measured"], error, 0, latency["measured"])
