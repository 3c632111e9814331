"""The licence of the weights that a run began with, where somebody has recorded it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNKNOWN = "not known: ask who trained it"
TIMM, TORCHVISION = "timm:", "torchvision.models"


@dataclass(frozen=True)
class Licence:
    """A licence.

    Attributes:
        text: a sentence's part for people.
        identifier: as the Hugging Face hub spells it; "" where it is not known or has no such spelling.
    """

    text: str
    identifier: str = ""


def licence_of_weights(source: str, weights: str | None) -> Licence:
    """The licence of the original network's weights.

    Args:
        source: ``model.source`` of the configuration.
        weights: ``model.weights`` of the configuration.
    """
    if weights == "pretrain":
        return Licence("none to keep: the run trained all weights itself, from scratch")
    if weights is None and source.startswith(TIMM):
        return _of_timm(source.removeprefix(TIMM))
    if weights is not None and source.startswith(f"{TORCHVISION}:"):
        return _of_torchvision(source.removeprefix(f"{TORCHVISION}:"), Path(weights).name)
    return Licence(UNKNOWN)


def _of_timm(name: str) -> Licence:
    import timm  # imported here, because it imports PyTorch

    config: Any = timm.get_pretrained_cfg(name, allow_unregistered=True)
    if config is None or not config.license:
        return Licence(UNKNOWN)
    where = f"{config.architecture}.{config.tag}" if config.tag else config.architecture
    return Licence(f"{config.license}, says timm of {where}", config.license)


def _of_torchvision(name: str, file: str) -> Licence:
    """Of weights whose file has the name of one that torchvision offers for the network."""
    import torchvision  # imported here, because it imports PyTorch

    try:
        known: Any = torchvision.models.get_model_weights(name)
    except ValueError:
        return Licence(UNKNOWN)
    found = [each for each in known if Path(each.url).name == file]
    text = found[0].meta.get("license") if found else None
    return Licence(f"{text}, says torchvision of {found[0]}" if text else UNKNOWN)
