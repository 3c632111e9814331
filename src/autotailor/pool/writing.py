"""Writes a pool: the shared files, the members' networks and pieces, ``pool.txt``, and ``pool.json`` for people."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autotailor.artifacts import SCHEMA_VERSION
from autotailor.data.labels import CLASSIFICATION
from autotailor.ir.supernet import SuperNet
from autotailor.pool.classes import Split
from autotailor.pool.exported import ExportedMember
from autotailor.pool.layout import Shared, lay_out
from autotailor.pool.plan import candidates_of, plan_member
from autotailor.pool.recording import record_pieces
from autotailor.pool.replacing import replaced
from autotailor.pool.verification import Verified, verify
from autotailor.serving.files import CLASSES, INDEX, MEMBERS, Index, Member, pieces_text
from autotailor.serving.files.exits import Confidence, Exit, Thresholds
from autotailor.task.registry import find

DOCUMENT = "pool.json"
INPUT, OUTPUT = "in0", "out{}"
"""Blobs of the networks that pnnx writes; outputs are counted, those of exits first."""
MEBI = 2**20
INHERITED, JOINT, OWN = "inherited", "joint", "own"
"""Members have the weights that all SubNets share, those that were trained on for the members alone, or their own."""


@dataclass(frozen=True)
class Facts:
    """What is known of a member besides its files.

    Attributes:
        accuracy: percent, on the validation set, with the SuperNet's weights.
        accuracy_error: standard error, points; None where it is not known.
        is_evaluated: whether the SubNet itself was evaluated; else its accuracy is predicted.
        predicted_ms: latency by the LUT.
        predicted_error_ms: its standard error by the LUT's.
        measured_ms: of the whole member; None where it was not measured.
        measured_error_ms: standard error of the mean of the rounds.
        split_ms: latency by class of operator; the sum is the measured latency, or else the predicted one.
        peak_mb: peak memory of an inference, MiB, weights included.
        energy_mj: above idle; None where the device has no sensor.
        exits, thresholds: see ``Member``.
    """

    accuracy: float
    accuracy_error: float | None
    is_evaluated: bool
    predicted_ms: float
    predicted_error_ms: float | None
    measured_ms: float | None
    measured_error_ms: float | None
    split_ms: Split
    peak_mb: float
    energy_mj: float | None
    exits: tuple[Exit, ...] = ()
    thresholds: tuple[Thresholds, ...] = ()


@dataclass(frozen=True)
class Origin:
    """What a pool was made from.

    Attributes:
        model, device: names in the configuration.
        threads, options: ncnn's, of the measurements.
        precision: of the shared tensors.
        cores: on which members are measured; empty where the system chooses.
        tolerance: see ``verify``.
        further: for ``pool.json`` alone.
        weights: ``INHERITED``, ``JOINT`` or ``OWN``.
        task: of the data.
        confidence: of answers, where members have exits.
    """

    model: str
    device: str
    threads: int
    options: Mapping[str, bool]
    precision: str = "fp32"
    tolerance: float = 1e-4
    further: Mapping[str, Any] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    weights: str = INHERITED
    task: str = CLASSIFICATION
    confidence: Confidence | None = None


def write_pool(
    folder: Path, net: SuperNet, members: Sequence[tuple[ExportedMember, Facts]], origin: Origin
) -> dict[str, Any]:
    """Writes a pool and compares every member with the SuperNet; the folder appears whole or not at all.

    Args:
        folder: of the pool; an older one there is replaced. ``replacing.held`` keeps other writers away.
        net: the SuperNet.
        members: at least one SubNet with the SuperNet's weights, in any order.
        origin: what the pool was made from.

    Returns:
        The content of ``pool.json``.

    Raises:
        PoolError: a member does not compute what the SuperNet computes.
    """
    ordered = sorted(members, key=lambda each: (sum(each[1].split_ms), each[0].subnet.id))
    named = {each[0].name or f"member_{number:02}": each for number, each in enumerate(ordered)}
    exported = {name: own for name, (own, _) in named.items()}
    shared = Shared(origin.precision)
    plans, tensors = {}, dict(net.graph.weights)
    for name, own in exported.items():
        candidates = candidates_of(net, own.subnet)
        plans[name] = plan_member(candidates, record_pieces(own.param, own.weights))
        tensors |= {each.tensor: each.solved for each in candidates if each.solved is not None}
    pieces = lay_out(plans, tensors, shared)
    with replaced(folder) as temporary:
        (temporary / MEMBERS).mkdir(parents=True)
        listed = []
        for name, (own, facts) in named.items():
            texts = {"param": own.param.read_text(encoding="utf-8"), "slices": pieces_text(pieces[name])}
            for kind, text in texts.items():
                (temporary / MEMBERS / f"{name}.{kind}").write_text(text, encoding="utf-8")
            hashes = {kind: hashlib.sha256(text.encode()).hexdigest() for kind, text in texts.items()}
            listed.append(_listed(name, own, facts, hashes))
        weights, norms = shared.write(temporary)
        options = tuple(sorted(origin.options.items()))
        head = (origin.model, origin.device, origin.threads, options, origin.precision)
        task = "" if origin.task == CLASSIFICATION else origin.task.partition(" ")[0]
        index = Index(*head, weights, norms, tuple(listed), origin.cores, origin.confidence, task)
        (temporary / INDEX).write_text(index.text(), encoding="utf-8")
        verified = verify(temporary, exported, origin.tolerance, find(origin.task))
        document = describe(index, named, verified, origin)
        (temporary / DOCUMENT).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return document


def describe(
    index: Index,
    named: Mapping[str, tuple[ExportedMember, Facts]],
    verified: Mapping[str, Verified],
    origin: Origin,
) -> dict[str, Any]:
    """The content of ``pool.json``: what ``pool.txt`` says, and more."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": index.model,
        "device": index.device,
        "runtime": {"threads": index.threads, "options": dict(index.options), "cores": list(index.cores)},
        "precision": index.precision,
        "files": {"weights.bin": asdict(index.weights), "norms.bin": asdict(index.norms)},
        "largest_member_bytes": max(each.bytes for each in verified.values()),
        "tolerance": origin.tolerance,
        **origin.further,
        "members": [
            _described(member, *named[member.name], verified[member.name], origin.weights) for member in index.members
        ],
    }


def _described(member: Member, own: ExportedMember, facts: Facts, verified: Verified, weights: str) -> dict[str, Any]:
    return {
        "name": member.name,
        "subnet": own.subnet.id,
        "assignment": own.subnet.assignment,
        "weights": weights,
        "accuracy": {
            "value": facts.accuracy,
            "standard_error": facts.accuracy_error,
            "from": "evaluation" if facts.is_evaluated else "prediction",
        },
        "latency_ms": {
            "predicted": facts.predicted_ms,
            "predicted_standard_error": facts.predicted_error_ms,
            "measured": facts.measured_ms,
            "measured_standard_error": facts.measured_error_ms,
            **dict(zip(CLASSES, facts.split_ms, strict=True)),
        },
        "peak_memory_mb": facts.peak_mb,
        "energy_mj": facts.energy_mj,
        "input": {"blob": member.input, "shape": member.shape},
        "output": {"blob": member.output, "classes": member.classes},
        **_exits(member),
        "sha256": {"param": member.param, "slices": member.slices},
        "verification": asdict(verified),
    }


def _exits(member: Member) -> dict[str, Any]:
    """What is told of a member's exits; nothing where there are none."""
    if not member.exits:
        return {}
    names = [each.name for each in member.exits]
    thresholds = {name: dict(zip(names, row, strict=True)) for name, row in member.thresholds}
    return {"exits": [asdict(each) for each in member.exits], "thresholds": thresholds}


def _listed(name: str, own: ExportedMember, facts: Facts, hashes: Mapping[str, str]) -> Member:
    return Member(
        name=name,
        accuracy=facts.accuracy,
        split_ms=facts.split_ms,
        peak_bytes=max(1, round(facts.peak_mb * MEBI)),
        energy_mj=math.nan if facts.energy_mj is None else facts.energy_mj,
        input=INPUT,
        shape=own.shape,
        output=OUTPUT.format(len(facts.exits)),
        classes=own.logits.shape[1],
        param=hashes["param"],
        slices=hashes["slices"],
        exits=facts.exits,
        thresholds=facts.thresholds,
    )
