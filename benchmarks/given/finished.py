"""The original network of a finished run, ``results/MODEL``, and the data of its model in ``conf/model``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autotailor import config


def section(folder: Path) -> dict[str, Any]:
    """The section ``data`` of the model that the folder is named after."""
    composed: dict[str, Any] = config.compose(config.conf_folder(), folder.name, "host")["data"]
    return composed


def prepare(folder: Path) -> Path:
    """The ONNX file of the original network."""
    return folder / "model.onnx"
