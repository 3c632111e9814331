"""Every member of a written pool is compared with the SuperNet, through the files as a device reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.export.verification import Comparison, compare
from autotailor.pool.exported import ExportedMember
from autotailor.pool.recording import record_pieces
from autotailor.serving.errors import PoolError
from autotailor.serving.files import Member, OpenPool, load_member, open_pool
from autotailor.task.interface import Task

Float32 = npt.NDArray[np.float32]

ROUNDING = {"fp32": 1e-5, "fp16": 2e-3}
"""Largest difference of a piece from that of the member's own ``.bin``, relative to the piece's largest value."""


@dataclass(frozen=True)
class Verified:
    """A member that agrees with the SuperNet.

    Attributes:
        max_relative_error: max |y - reference| / max |reference| over all images and classes.
        same_predictions: how far both say the same, 0 to 1 (``Task.agree``).
        weight_error: largest difference of a piece from the member's own ``.bin``, relative to its largest value.
        bytes: of the weights once they are read: those of the member's own ``.bin``.
    """

    max_relative_error: float
    same_predictions: float
    weight_error: float
    bytes: int


def verify(folder: Path, exported: Mapping[str, ExportedMember], tolerance: float, task: Task) -> dict[str, Verified]:
    """Compares all members of a pool.

    Args:
        folder: of the pool.
        exported: members' names to the SubNets' own files and the SuperNet's answers.
        tolerance: largest error of the outputs allowed.
        task: of the networks.

    Returns:
        Members' names to what was found.

    Raises:
        PoolError: a member differs by more; the message names it.
    """
    from autotailor.profiling.runtimes.ncnn.runtime import FP16_OPTIONS, FP32_OPTIONS

    pool = open_pool(folder)
    precise = tuple((name, False) for name in (*FP16_OPTIONS, *FP32_OPTIONS))
    plain = replace(pool, index=replace(pool.index, options=precise, threads=1))
    return {
        member.name: _verified(plain, member, exported[member.name], tolerance, task) for member in pool.index.members
    }


def _verified(pool: OpenPool, member: Member, own: ExportedMember, tolerance: float, task: Task) -> Verified:
    error = _weight_error(pool, member, own)
    match = _compared(pool, member, own, task)
    if not match.max_relative_error <= tolerance:  # nor NaN, where one of both answers no numbers
        raise PoolError(
            f"member {member.name} (SubNet {own.subnet.id}) differs from the SuperNet by a relative error of "
            f"{match.max_relative_error:.2e}, {tolerance:.0e} is allowed: raise pool.tolerance where pool.precision is "
            "fp16; else report it with the network's configuration"
        )
    return Verified(match.max_relative_error, match.same_predictions, error, pool.size(member))


def _compared(pool: OpenPool, member: Member, own: ExportedMember, task: Task) -> Comparison:
    """The member's own answers beside the SuperNet's, with the largest error of all its answers."""
    answers, expected = run_exits(pool, member, own.images), (*own.exits, own.logits)
    comparisons = [
        compare(member.name, "ncnn", "", partial(_same, answer), own.images, reference, task)
        for answer, reference in zip(answers, expected, strict=True)
    ]
    return replace(comparisons[-1], max_relative_error=float(np.max([each.max_relative_error for each in comparisons])))


def _same(answer: Float32, _: Float32) -> Float32:
    return answer


def _weight_error(pool: OpenPool, member: Member, own: ExportedMember) -> float:
    worst = 0.0
    pieces, recorded = pool.pieces(member), record_pieces(own.param, own.weights)
    for piece, expected in zip(pieces, recorded, strict=True):
        values = pool.read(piece)
        if expected.is_tag:
            continue
        difference = float(np.abs(values - expected.values).max()) / max(float(np.abs(expected.values).max()), 1e-30)
        if not difference <= ROUNDING[pool.index.precision]:
            raise PoolError(
                f"member {member.name} (SubNet {own.subnet.id}): the piece {piece.line()[:80]!r} differs from what the "
                f"exporter writes by {difference:.1e} of its largest value; make the pool anew"
            )
        worst = max(worst, difference)
    return worst


def run_exits(pool: OpenPool, member: Member, images: Float32) -> tuple[Float32, ...]:
    """Logits ``[n, classes]`` of a member's exits, its own last, for images ``[n, 3, r, r]``.

    ncnn's wheel computes them on this computer, with one extractor for each image.
    """
    import ncnn

    net = load_member(pool, member)
    blobs = [*(each.output for each in member.exits), member.output]
    logits_of: list[list[Float32]] = [[] for _ in blobs]
    for image in images:
        whole = np.ascontiguousarray(image)
        extractor = net.create_extractor()
        extractor.input(member.input, ncnn.Mat(whole).clone())
        for blob, rows in zip(blobs, logits_of, strict=True):
            code, logits = extractor.extract(blob)
            if code != 0 or logits.empty():
                raise PoolError(f"member {member.name}: ncnn cannot run it on an image of shape {list(image.shape)}")
            rows.append(np.array(logits, dtype=np.float32).reshape(-1))
    return tuple(np.stack(rows) for rows in logits_of)
