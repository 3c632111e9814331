"""Files of evaluations, and of a metric that was made of them."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from autotailor.artifacts import atomic, read_json, write_json
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.link import IDENTITY, LOGIT
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Space
from autotailor.prediction.errors import PredictionError
from autotailor.prediction.outcomes import BoolArray, Outcomes
from autotailor.statistics import accuracy

COLUMNS = ("subnet", "assignment", "accuracy", "standard_error", "right")
LINKS = {link.name: link for link in (IDENTITY, LOGIT)}


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


def write_metric(path: str | Path, metric: Metric) -> None:
    """Writes a metric as JSON: name, unit, link, constant, and its terms as tables."""
    if any(term.derived is not None for term in metric.terms):
        raise PredictionError(f"metric {metric.name}: a term over derived sums cannot be written")
    terms = [
        {
            "variables": list(term.variables),
            "table": np.asarray(term.table).tolist(),
            "gate": None if term.gate is None else {"variables": list(term.gate.variables), "table": term.gate.table},
            "label": term.label,
        }
        for term in metric.terms
    ]
    head = {"name": metric.name, "unit": metric.unit, "link": metric.link.name, "constant": metric.constant}
    write_json(path, {**head, "terms": terms})


def read_metric(path: str | Path, space: Space) -> Metric:
    """Reads a file of ``write_metric``.

    Raises:
        PredictionError: the file holds no metric of this space.
    """
    found = read_json(path)
    try:
        terms = tuple(
            Term(tuple(t["variables"]), np.array(t["table"], dtype=np.float64), _gate(t["gate"]), t["label"])
            for t in found["terms"]
        )
        return Metric(found["name"], found["unit"], space, terms, float(found["constant"]), LINKS[found["link"]])
    except (KeyError, TypeError, ValueError, AutoTailorError) as error:
        raise PredictionError(f"{path} holds no metric of this space ({error}); run the rule that writes it") from error


def _gate(found: dict[str, list[object]] | None) -> Gate | None:
    if found is None:
        return None

    def nested(table: object) -> object:
        return tuple(nested(entry) for entry in table) if isinstance(table, list) else bool(table)

    return Gate(tuple(str(name) for name in found["variables"]), nested(found["table"]))  # type: ignore[arg-type]
