"""``evaluations.csv``: evaluated SubNets with their answers to all images."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from autotailor.artifacts import atomic
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Space
from autotailor.prediction.errors import PredictionError
from autotailor.prediction.outcomes import BoolArray, Outcomes
from autotailor.statistics import accuracy

COLUMNS = ("subnet", "assignment", "accuracy", "standard_error", "right")


def write_outcomes(path: str | Path, outcomes: Outcomes) -> None:
    """Writes ``evaluations.csv``: the largest SubNet and all others, with accuracy in percent and its standard error.

    The column ``right`` holds a bit for each image, packed from the highest bit of a byte on, in Base64.
    """
    subnets = [largest(outcomes.space), *outcomes.subnets]
    answers = [outcomes.reference, *outcomes.right]
    rows = [
        (subnet.id, subnet.to_json(), *accuracy(right, outcomes.groups), _packed(right))
        for subnet, right in zip(subnets, answers, strict=True)
    ]
    with atomic(path) as temporary:
        pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(temporary, index=False)


def read_outcomes(path: str | Path, space: Space, groups: npt.ArrayLike) -> Outcomes:
    """Reads a file of ``write_outcomes``.

    Args:
        path: of the file.
        space: of the SubNets.
        groups: base image of each image on which the SubNets were evaluated.

    Raises:
        PredictionError: the file holds no evaluations of this space on so many images.
    """
    images = len(np.asarray(groups))
    try:
        table = pd.read_csv(path, dtype={"subnet": str, "right": str})
        subnets = [SubNet.from_json(space, text) for text in table["assignment"]]
        right = {subnet.id: _unpacked(text, images) for subnet, text in zip(subnets, table["right"], strict=True)}
    except (OSError, ValueError, KeyError, TypeError, binascii.Error, AutoTailorError) as error:
        raise PredictionError(
            f"{path} holds no evaluations of this space ({error}); run the rule sensitivity"
        ) from error
    return Outcomes.of(space, subnets, right, groups)


def _packed(right: BoolArray) -> str:
    return base64.b64encode(np.packbits(right).tobytes()).decode("ascii")


def _unpacked(text: str, images: int) -> BoolArray:
    packed = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    if len(packed) != -(-images // 8):
        raise ValueError(f"expected a bit for each of {images} images, found {len(packed)} bytes")
    return np.unpackbits(packed, count=images).astype(np.bool_)
