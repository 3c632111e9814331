"""Training of a few SubNets together, which share the SuperNet's weights: members of a pool, candidates before a race.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.finetuning.joint.config import JointConfig, before_race, config_before_race, continued
    from autotailor.finetuning.joint.training import JointResult, Purpose, train_jointly

__all__ = ["JointConfig", "JointResult", "Purpose", "before_race", "config_before_race", "continued", "train_jointly"]

_HOMES = {
    "JointConfig": "autotailor.finetuning.joint.config",
    "Purpose": "autotailor.finetuning.joint.training",
    "before_race": "autotailor.finetuning.joint.config",
    "config_before_race": "autotailor.finetuning.joint.config",
    "continued": "autotailor.finetuning.joint.config",
    "JointResult": "autotailor.finetuning.joint.training",
    "train_jointly": "autotailor.finetuning.joint.training",
}
__getattr__ = attach(__name__, _HOMES)
