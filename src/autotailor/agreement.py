"""Where the sections ``model`` and ``data`` speak of the same thing, they must say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotailor.ir.errors import AutoTailorError


class AgreementError(AutoTailorError):
    """The model and the data contradict each other."""


def settle_resolution(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration whose network and data have the same resolution: where one is null, it is the other's.

    Args:
        config: with the sections ``model`` and ``data``; sections that know no resolution are left alone.

    Raises:
        AgreementError: there are two different ones, or none.
    """
    model, data = config.get("model", {}), config.get("data", {})
    if "resolution" not in model or "resolution" not in data:
        return config
    one, other = model["resolution"], data["resolution"]
    if one is None and other is None:
        raise AgreementError(
            "model.resolution is null, and data.resolution with it: set model.resolution to the side of the network's "
            "images in pixels (python -m autotailor inspect SOURCE says it)"
        )
    if None not in (one, other) and one != other:
        raise AgreementError(
            f"model.resolution is {one} and data.resolution is {other}: the network is trained on the images that the "
            f"data deliver. Change model.resolution, and leave data.resolution at ${{model.resolution}}"
        )
    side = other if one is None else one
    return config | {"model": model | {"resolution": side}, "data": data | {"resolution": side}}


def check_classes(model: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Refuses data with another number of classes than the network has outputs, as far as both are known.

    Raises:
        AgreementError: both numbers, and what to do.
        DataError: the data cannot be had.
    """
    from autotailor import data as datasets

    outputs, classes = model.get("num_classes"), datasets.classes(data)
    if outputs is not None and classes is not None and len(classes) != outputs:
        raise AgreementError(mismatch(str(model.get("source")), outputs, str(data.get("root", data["name"])), classes))


def mismatch(source: str, outputs: int, place: str, classes: tuple[str, ...]) -> str:
    """The message for data that do not fit a network's outputs."""
    shown = ", ".join(classes[:5]) + (" ..." if len(classes) > 5 else "")
    return (
        f"the network {source} has {outputs} outputs, the data {place} have {len(classes)} classes ({shown}). Output i "
        f"is the i-th class by sorted name: take the folders of exactly the {outputs} classes that the network was "
        f"trained on, or give a network with {len(classes)} outputs (timm:NAME and module:factory make one for a "
        f"checkpoint that has them: model.weights, and --weights of inspect)"
    )
