"""Training of a few SubNets together, which keep sharing the SuperNet's weights: the members of a pool.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.finetuning.joint.training import JointResult, train_jointly

__all__ = ["JointResult", "train_jointly"]

_HOMES = {
    "JointResult": "autotailor.finetuning.joint.training",
    "train_jointly": "autotailor.finetuning.joint.training",
}
__getattr__ = attach(__name__, _HOMES)
