"""Checks that the sections ``model`` and ``data`` agree on the resolution, the classes and the pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotailor.data.labels import CLASSIFICATION, names_outputs
from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from autotailor.ir.given import Given

BYTE = round(1 / 255, 9)


class AgreementError(AutoTailorError):
    """The model and the data contradict each other."""


def settle_resolution(config: dict[str, Any]) -> dict[str, Any]:
    """Gives the network and the data the same resolution: a resolution of null takes the other section's value.

    Args:
        config: with the sections ``model`` and ``data``; where a section has no key ``resolution``, nothing changes.

    Returns:
        The configuration with both resolutions set.

    Raises:
        AgreementError: the resolutions differ, or both are null.
    """
    model, data = config.get("model", {}), config.get("data", {})
    if "resolution" not in model or "resolution" not in data:
        return config
    one, other = model["resolution"], data["resolution"]
    if one is None and other is None:
        raise AgreementError(
            "model.resolution and data.resolution are null: set model.resolution to the side of the network's images "
            "in pixels (python -m autotailor inspect SOURCE shows it)"
        )
    if None not in (one, other) and one != other:
        raise AgreementError(
            f"model.resolution is {one} and data.resolution is {other}, but the network is trained on the images of "
            f"the data. Change model.resolution, and leave data.resolution at ${{model.resolution}}"
        )
    side = other if one is None else one
    return config | {"model": model | {"resolution": side}, "data": data | {"resolution": side}}


def check_classes(model: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Refuses data whose number of classes differs from the network's number of outputs, where both are known.

    Raises:
        AgreementError: the numbers differ; the message gives both, and the remedy.
        DataError: the data are missing.
    """
    from autotailor import data as datasets

    if not names_outputs(str(data.get("task", CLASSIFICATION))):
        return
    outputs, classes = model.get("num_classes"), datasets.classes(data)
    if outputs is not None and classes is not None and len(classes) != outputs:
        told = mismatch(str(model.get("source")), outputs, str(data.get("root", data["name"])), classes)
        raise AgreementError(
            f"{told}. The number of outputs is that of model.num_classes: where the network has {len(classes)} outputs "
            f"and model.num_classes is wrong, set model.num_classes to {len(classes)}"
        )


def check_pixels(given: Given, source: str, data: Mapping[str, Any]) -> None:
    """Refuses data that do not give a network of bytes numbers from 0 to 255.

    Args:
        given: how the network's file takes its image.
        source: of the network.
        data: section.

    Raises:
        AgreementError: the data standardise their pixels, or leave them between 0 and 1.
    """
    mean, std = (data.get(name) or () for name in ("mean", "std"))
    fits = all(abs(value) < 1e-6 for value in mean) and all(abs(255 * value - 1) < 1e-3 for value in std)
    if given.is_bytes and mean and not fits:
        raise AgreementError(
            f"the network {source} takes bytes, and scales them itself; data.mean is {list(mean)} and data.std is "
            f"{list(std)}: set data.mean to [0, 0, 0] and data.std to [{BYTE}, {BYTE}, {BYTE}], which give it numbers "
            "from 0 to 255"
        )


def mismatch(source: str, outputs: int, place: str, classes: tuple[str, ...]) -> str:
    """The message for data that do not fit a network's outputs."""
    shown = ", ".join(classes[:5]) + (" ..." if len(classes) > 5 else "")
    return (
        f"the network {source} has {outputs} outputs, the data {place} have {len(classes)} classes ({shown}). Output i "
        f"is the i-th class, folders by sorted name and columns of a table as they stand: take those of exactly the "
        f"{outputs} classes that the network was trained on, or give a network with {len(classes)} outputs (timm:NAME "
        f"and module:factory make one for a checkpoint with {len(classes)} outputs: set model.weights, or --weights of "
        f"inspect)"
    )
