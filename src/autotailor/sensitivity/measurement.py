"""Rule sensitivity: the accuracy drop of each single modification (paper, 4.2.3, eq. 2), and their sum (eq. 3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.config import DIVERGENCE, CalibrationConfig
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.accuracy.journal import Journal
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.compute.accelerator import resolve
from autotailor.data.excerpt import share_of
from autotailor.data.splits import DataSplits, EvaluationSet
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Modification, Space, Variable, as_shown, shown
from autotailor.ir.supernet import SuperNet
from autotailor.prediction.accuracy import Accuracy, DropError
from autotailor.prediction.evaluations.chance import paired_errors, uncontradicted
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.prediction.measured import Measured
from autotailor.prediction.model import AccuracyModel
from autotailor.progress.bars import track
from autotailor.sensitivity.config import SensitivityConfig, SensitivityError
from autotailor.statistics import accuracy, accuracy_drop, clustered_mean
from autotailor.task.interface import Lesson
from autotailor.task.registry import of

COLUMNS = ("variable", "choice", "accuracy_drop", "standard_error", "divergence", "divergence_standard_error")


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Accuracy drops of single modifications on the validation set.

    Attributes:
        rows: variable, choice, accuracy_drop (points; negative where accuracy rose), standard_error (points,
            paired, clustered by base image), divergence and divergence_standard_error (``Task.apart``, a mean over the
            images, clustered; empty where labels judge). One row per modification; the unmodified choices have 0 and 0.
        baseline: accuracy of the largest SubNet, percent.
        baseline_standard_error: standard error of the baseline, points.
    """

    rows: pd.DataFrame
    baseline: float
    baseline_standard_error: float


def learnt_from(data: DataSplits, config: SensitivityConfig) -> EvaluationSet:
    """The images from whose evaluations accuracy is predicted: ``config.images`` of the validation set."""
    return share_of(data.validation, config.images)


def learning(data: DataSplits, images: EvaluationSet) -> str:
    """Title of evaluations on the images of ``learnt_from``."""
    return "sensitivity" if images is data.validation else f"sensitivity on {len(images)} images"


def measure(net: SuperNet, data: DataSplits, config: SensitivityConfig, journal: Path) -> Sensitivity:
    """Evaluates every single modification of the largest SubNet on the validation set, or on ``config.images`` of it.

    Args:
        net: the trained SuperNet.
        data: the splits; the validation set is used.
        config: parameters.
        journal: file of finished evaluations; SubNets in it are not evaluated again if the file belongs to the same
            network, data and parameters.
    """
    base = net.largest()
    singles = {
        (v.name, choice): base.transform(Modification(v.name, choice)) for v in net.space for choice in v.choices
    }
    images = learnt_from(data, config)
    outcomes = evaluate(net, data, images, [base, *singles.values()], config, journal, learning(data, images))
    groups, values = images.groups, outcomes[base.id].values

    def row(subnet: SubNet) -> tuple[float, ...]:
        outcome = outcomes[subnet.id]
        apart = clustered_mean(outcome.losses, groups) if outcome.is_divergence else (np.nan, np.nan)
        return (*accuracy_drop(values, outcome.values, groups), *apart)

    rows = [(variable, choice, *row(subnet)) for (variable, choice), subnet in singles.items()]
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"choice": object})
    frame["choice"] = pd.Series([row[1] for row in rows], dtype=object)  # integers stay integers
    return Sensitivity(frame, *accuracy(values, groups))


def accuracy_metric(space: Space, rows: pd.DataFrame, baseline: float) -> Metric:
    """Accuracy in percent: baseline minus the sum of drops (paper, eq. 3), without drops of blocks that depth removed.

    Args:
        space: of the SuperNet.
        rows: columns variable, choice, accuracy_drop, with one row for every modification.
        baseline: accuracy of the largest SubNet, percent.

    Raises:
        SensitivityError: a modification is missing, occurs twice, is not in the space, or has no finite drop.
    """
    if missing := [c for c in COLUMNS[:3] if c not in rows.columns]:
        raise SensitivityError(f"sensitivities lack the columns {missing}; found {list(rows.columns)}")
    drops: dict[tuple[str, str], float] = {}
    for variable, choice, drop in zip(rows["variable"], rows["choice"], rows["accuracy_drop"], strict=True):
        key = (str(variable), as_shown(choice))
        if key in drops or not np.isfinite(drop):
            raise SensitivityError(f"sensitivity of {variable} = {choice}: occurs twice or is not finite ({drop})")
        drops[key] = float(drop)
    terms = tuple(
        Term((v.name,), -np.array([_drop(drops, v, i) for i in range(len(v.choices))]), v.gate, v.name) for v in space
    )
    if drops:
        raise SensitivityError(
            f"sensitivities: {sorted(drops)[0]} is not a modification of this space; run the sensitivity rule again"
        )
    return Metric("accuracy", "%", space, terms, float(baseline))


def predicted_accuracy(space: Space, rows: pd.DataFrame, baseline: float, standard_error: float) -> Accuracy:
    """``accuracy_metric`` with its standard error, as if drops and baseline were independent.

    Args:
        space: of the SuperNet.
        rows: columns variable, choice, accuracy_drop, standard_error, with one row for every modification.
        baseline: accuracy of the largest SubNet, percent.
        standard_error: of the baseline, points.

    Raises:
        SensitivityError: see ``accuracy_metric``.
    """
    if "standard_error" not in rows.columns:
        raise SensitivityError(f"sensitivities lack the column standard_error; found {list(rows.columns)}")
    squares = accuracy_metric(space, rows.assign(accuracy_drop=np.square(rows["standard_error"])), 0.0)
    terms = tuple(replace(term, table=-term.table) for term in squares.terms)
    variance = Metric("accuracy_variance", "%²", space, terms, standard_error**2)
    return Accuracy(accuracy_metric(space, rows, baseline), DropError(variance))


def _drop(drops: dict[tuple[str, str], float], variable: Variable, index: int) -> float:
    """Removes one drop from the table and returns it; 0 for the unmodified choice."""
    drop = drops.pop((variable.name, shown(variable.choices[index])), None)
    if index == variable.default:
        return 0.0
    if drop is None:
        raise SensitivityError(
            f"sensitivity of {variable.name} = {variable.choices[index]} is missing; run the sensitivity rule again"
        )
    return drop


def measure_accuracies(
    net: SuperNet,
    data: DataSplits,
    subnets: Sequence[SubNet],
    config: SensitivityConfig,
    journal: Path,
    model: AccuracyModel | None = None,
    past: Outcomes | None = None,
) -> dict[str, Measured]:
    """Accuracy of whole SubNets on the validation set by SubNet id.

    Posteriors do not contradict the measurements (``autotailor.prediction.evaluations.chance``): of any of these
    SubNets, the one with the highest posterior was measured as clearly worse than none of them.

    Args:
        net: the trained SuperNet.
        data: the splits; the validation set is used.
        subnets: distinct.
        config: parameters.
        journal: see ``evaluate``.
        model: what earlier evaluations have taught, perhaps on a part of the images; without it, the posterior is the
            measurement.
        past: earlier evaluations on all images of the validation set, from which the model has learnt; they are not
            evaluated again.
    """
    images, base = data.validation, largest(net.space)
    evaluations = dict({} if past is None else past.by_id)
    reference = [] if model is None else [base]
    fresh = [subnet for subnet in dict.fromkeys([*reference, *subnets]) if subnet.id not in evaluations]
    if fresh:
        evaluations |= evaluate(net, data, images, fresh, config, journal, "candidates")
    measured = {s.id: Measured.alone(*accuracy(evaluations[s.id].values, images.groups)) for s in subnets}
    earlier = () if past is None else past.subnets
    others = [subnet for subnet in dict.fromkeys([*earlier, *subnets]) if subnet != base]
    if model is None or not others:
        return measured
    if later := [subnet for subnet in fresh if subnet != base]:
        model = model.updated(Outcomes.of(net.space, later, evaluations, images.groups))
    posteriors = _posteriors(model, Outcomes.of(net.space, others, evaluations, images.groups))
    return {
        id_: replace(each, posterior=posteriors[id_][0], posterior_error=posteriors[id_][1])
        if id_ in posteriors
        else each
        for id_, each in measured.items()
    }


def _posteriors(model: AccuracyModel, outcomes: Outcomes) -> dict[str, tuple[float, float]]:
    """Posterior of each SubNet's accuracy on the images of its outcome, percent, and its standard error, points."""
    rows = outcomes.indices
    values = np.concatenate([outcomes.reference.values[None], outcomes.values])
    measured, errors = 100.0 * values.mean(axis=1), paired_errors(values, outcomes.groups)
    believed = np.concatenate([measured[:1], model.predict(rows)])
    posterior = uncontradicted(believed, measured, errors, reference=0)[1:]
    errors_ = model.standard_errors(rows)
    error = np.where(posterior == believed[1:], errors_, np.maximum(errors_, errors[1:, 0]))
    pairs = zip(posterior.tolist(), error.tolist(), strict=True)
    return {subnet.id: each for subnet, each in zip(outcomes.subnets, pairs, strict=True)}


def evaluate(
    net: SuperNet,
    data: DataSplits,
    images: EvaluationSet,
    subnets: Iterable[SubNet],
    config: SensitivityConfig,
    path: Path,
    title: str,
) -> dict[str, Outcome]:
    """Values and losses of SubNets after recalibration; SubNets in the journal are not evaluated again.

    Args:
        net: the SuperNet.
        data: the splits; the training stream recalibrates.
        images: the evaluation set.
        subnets: of the SuperNet's space.
        config: parameters.
        path: of the journal.
        title: what the evaluations are for; a journal is not read for another title.

    Returns:
        Id of each SubNet to its values and losses, image by image.
    """
    by_id = {subnet.id: subnet for subnet in subnets}
    if any(subnet.space != net.space for subnet in by_id.values()):
        raise SensitivityError(f"{title}: a SubNet does not belong to the space of {net.name}; sample it from this net")
    device = resolve(config.accelerator)
    lesson = compared(net, images, config)
    module = net.module(logits=lesson is not None and of(images).logits).eval().to(device)
    computed = [] if device.type == "cpu" else [device.type]  # journals of the processor do not name it
    computed += [] if lesson is None else [DIVERGENCE]
    identity = fingerprint(
        [title, repr((config.calibration, config.batch_size)), data.fingerprint, repr(largest(net.space)), *computed],
        module.state_dict(),
    )
    journal = Journal(Path(path), identity)
    missing = [subnet for id_, subnet in by_id.items() if journal.get(id_) is None]
    with deterministic(config.threads, device):
        calibrator = _calibrator(data, config.calibration)
        evaluator = Evaluator(module, calibrator, images, config.workers, config.batch_size, config.memory_mb, lesson)
        for subnet, outcome in track(evaluator.all(missing), description=title, total=len(missing)):
            journal.add(subnet.id, outcome)
    outcomes = {id_: journal.get(id_) for id_ in by_id}
    return {id_: outcome for id_, outcome in outcomes.items() if outcome is not None}


def compared(net: SuperNet, images: EvaluationSet, config: SensitivityConfig) -> Lesson | None:
    """How far outputs are from those of the largest SubNet, where that judges SubNets (``config.judge``); else None.

    Outputs that tell lengths in pixels are others for a smaller picture, and no worse. So labels judge a space of such
    a network that has several resolutions.
    """
    has_sizes = RESOLUTION in net.space.positions and len(net.space[RESOLUTION].choices) > 1
    if config.judge != DIVERGENCE or (of(images).at_side and has_sizes):
        return None
    return Lesson(weight=1.0, independent=net.head.independent)


@lru_cache(maxsize=1)
def _calibrator(data: DataSplits, config: CalibrationConfig) -> Calibrator:
    """One calibrator for all evaluations of a rule, because to make its crops takes as long as some evaluations."""
    return Calibrator(data, config)
