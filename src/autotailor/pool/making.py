"""The stage ``pool``: chooses members of the front, exports, measures, and writes them as a pool."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.accuracy import CalibrationConfig, calibrate
from autotailor.data import DataSplits, Preparation
from autotailor.data.labels import CLASSIFICATION
from autotailor.export.deployable import inherited
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.supernet import SuperNet
from autotailor.pool.classes import Rates, scaled
from autotailor.pool.config import PoolConfig
from autotailor.pool.exported import ExportedMember, export_member, read_member
from autotailor.pool.members import members_of
from autotailor.pool.replacing import held
from autotailor.pool.writing import INHERITED, JOINT, Facts, Origin, write_pool
from autotailor.prediction import Accuracy, Measured
from autotailor.profiling import (
    LUT,
    DeviceConfig,
    Measurement,
    exporting_runtime,
    fusion_rules,
    mean_of_rounds,
    measure_rounds,
    open_runtime,
)
from autotailor.search import Front
from autotailor.search.metrics import Sources, all_metrics
from autotailor.serving.errors import PoolError

logger = logging.getLogger(__name__)

NCNN = "ncnn"
"""What the names of the runtimes begin with that run networks of ncnn."""

WAIT_S = 60.0
"""Seconds that the rule waits for a search that extends the pool."""

TRAINING = "training"
"""Key of ``pool.json``: what the training of the members says; null where there was none."""

Measure = Callable[[Sequence[ExportedMember]], Sequence[Measurement]]
"""Times members on the device."""

Evaluate = Callable[[Sequence[SubNet]], Mapping[str, Measured]]
"""Ids of SubNets to their accuracies on the validation set, which are evaluated for it."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a run knows of its SubNets.

    Attributes:
        net: the SuperNet.
        front: of the rule search; None where no members are chosen from it.
        accuracy: predicted, with the SuperNet's weights, on the validation set; None where all members are evaluated.
        evaluated: ids of SubNets to their evaluated accuracy on the same images.
        lut: of the device.
        device: the device.
        training: what the training of the members says (``JointResult.document``); None where members have the weights
            that all SubNets share.
    """

    net: SuperNet
    front: Front | None
    accuracy: Accuracy | None
    evaluated: Mapping[str, Measured]
    lut: LUT
    device: DeviceConfig
    training: Mapping[str, Any] | None = None

    @property
    def weights(self) -> str:
        """Which weights its SuperNet has, see ``Origin.weights``."""
        return JOINT if self.training is not None and self.training["is_better"] else INHERITED


def make_pool(
    folder: Path,
    run: Run,
    origin: Origin,
    config: PoolConfig,
    export: Callable[[SubNet], ExportedMember],
    measure: Measure | None,
    evaluate: Evaluate | None = None,
) -> dict[str, Any]:
    """Makes the pool of a run; the folder appears whole or not at all.

    Args:
        folder: of the pool.
        run: what is known.
        origin: see ``origin_of``.
        config: the section ``pool``.
        export: writes the files of a SubNet, or finds those of an interrupted run.
        measure: times members; None leaves them at their predicted latencies.
        evaluate: accuracies of members that the run has not evaluated; None leaves those at what is predicted.

    Returns:
        The content of ``pool.json``.

    Raises:
        PoolError: the front is empty, a member does not compute what the SuperNet computes, or another process
            replaces the pool as well.
    """
    with held(folder, WAIT_S):
        assert run.front is not None
        chosen, subnets = members_of(run.front, config.members, config.slowdown)
        logger.info("%d of the %d SubNets of the front are members", len(subnets), len(run.front))
        exported = []
        for number, subnet in enumerate(subnets, 1):
            exported.append(export(subnet))
            logger.info("members exported: %d of %d", number, len(subnets))
        evaluated = with_evaluated(run, subnets, evaluate)  # first: a journal keeps evaluations after a kill
        measured = measure(exported) if measure is not None and config.rounds else [None] * len(exported)
        facts = facts_of(evaluated, subnets, measured)
        front = {"subnets": len(run.front), "slowdown": config.slowdown, "expected_loss": chosen.loss}
        further = {**origin.further, "front": front, TRAINING: run.training}
        origin = replace(origin, weights=run.weights, further=further)
        return write_pool(folder, run.net, list(zip(exported, facts, strict=True)), origin)


def check_device(device: DeviceConfig) -> None:
    """Raises PoolError unless ncnn runs on the device."""
    if not device.runtime.startswith(NCNN):
        raise PoolError(
            f"device {device.name}: its runtime is {device.runtime}, and members of a pool are networks of ncnn; name "
            "a device whose runtime is ncnn"
        )


def origin_of(
    model: str,
    device: DeviceConfig,
    config: PoolConfig,
    preparation: Preparation | None = None,
    task: str = CLASSIFICATION,
) -> Origin:
    """What a pool of a device is made from.

    Args:
        model: name in the configuration.
        device: the device.
        config: the section ``pool``.
        preparation: what makes the networks' input of a picture, for ``pool.json``; None where it is not known.
        task: of the data.

    Raises:
        PoolError: another runtime than ncnn runs on the device.
    """
    check_device(device)
    options = open_runtime(device).settings()["options"]
    further = {"preparation": asdict(preparation) if preparation else None}
    head = (model, device.name, device.threads, options)
    return Origin(*head, config.precision, config.tolerance, further, device.cores, task=task)


def exporter(
    net: SuperNet, module: ElasticModule, data: DataSplits, calibration: CalibrationConfig, work: Path
) -> Callable[[SubNet], ExportedMember]:
    """What exports members, with statistics calibrated as those of the exports are.

    Args:
        net: the SuperNet.
        module: of the SuperNet, in evaluation mode.
        data: the training images calibrate, and the first test images are compared.
        calibration: parameters.
        work: folder of the members' files, in which an interrupted run goes on.
    """
    runtime = exporting_runtime()

    def export(subnet: SubNet) -> ExportedMember:
        folder = work / subnet.id
        if folder.exists():
            return read_member(subnet, runtime, folder)
        network = inherited(net, subnet, calibrate(module, subnet, data, calibration))
        return export_member(network, data.test, runtime, folder)

    return export


def timing(device: DeviceConfig, lut: LUT, config: PoolConfig) -> Measure:
    """What times members on a device, all interleaved, at the machine's speed when the LUT was measured."""

    def measure(members: Sequence[ExportedMember]) -> Sequence[Measurement]:
        networks = {each.subnet.id: (each.param.parent, (1, *each.shape)) for each in members}
        return mean_of_rounds(measure_rounds(networks, device, config.rounds, seconds_each=config.seconds, lut=lut))

    return measure


def with_evaluated(run: Run, subnets: Sequence[SubNet], evaluate: Evaluate | None) -> Run:
    """A run that has evaluated some SubNets, too; those that it had evaluated are not evaluated again."""
    unknown = [subnet for subnet in subnets if subnet.id not in run.evaluated]
    if evaluate is None or not unknown:
        return run
    logger.info("%d members whose accuracy was predicted are evaluated", len(unknown))
    return replace(run, evaluated={**run.evaluated, **evaluate(unknown)})


def facts_of(run: Run, subnets: Sequence[SubNet], measured: Sequence[Measurement | None]) -> list[Facts]:
    """What is known of each member besides its files.

    Args:
        run: what is known.
        subnets: the members.
        measured: latency of each on the device; None where it was not measured.
    """
    rows, fusion, lut = stack(subnets), fusion_rules(run.device), run.lut
    latencies = lut.latencies()
    rates = Rates.of([row.feature for row in lut], latencies)
    predicted = run.net.latency(latencies, fusion).predict(rows)
    errors = run.net.latency_error(lut.standard_errors(), fusion).predict(rows)
    metrics = all_metrics(Sources(run.net, fusion, lut.column, run.device.number_bytes))
    further = {name: metric.predict(rows) for name, metric in metrics.items()}
    spent = further.get("energy")
    facts = []
    for number, (subnet, timed) in enumerate(zip(subnets, measured, strict=True)):
        features = [operator.feature for operator in run.net.sequence(subnet, fusion)]
        split = rates.split_all(features, latencies)
        value, error, is_evaluated = accuracy_of(run, subnet)
        facts.append(
            Facts(
                accuracy=value,
                accuracy_error=error,
                is_evaluated=is_evaluated,
                predicted_ms=float(predicted[number]),
                predicted_error_ms=float(errors[number]),
                measured_ms=None if timed is None else timed.latency_ms,
                measured_error_ms=None if timed is None else timed.standard_error,
                split_ms=scaled(split, float(predicted[number]) if timed is None else timed.latency_ms),
                peak_mb=float(further["peak_memory"][number]),
                energy_mj=None if spent is None else float(spent[number]),
            )
        )
    return facts


def accuracy_of(run: Run, subnet: SubNet) -> tuple[float, float | None, bool]:
    """Accuracy of a SubNet, percent, with its standard error, and whether the SubNet itself was evaluated.

    Of an evaluated SubNet the posterior mean counts, which weighs the evaluation against the prediction.
    """
    evaluation = run.evaluated.get(subnet.id)
    if evaluation is not None:
        return evaluation.posterior, evaluation.posterior_error, True
    assert run.accuracy is not None
    row = np.atleast_2d(subnet.to_array())
    error = None if run.accuracy.error is None else float(run.accuracy.error.predict(row)[0])
    return float(run.accuracy.metric.predict(row)[0]), error, False
