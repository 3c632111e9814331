"""Training of a few SubNets together, which share the SuperNet's weights: members of a pool, candidates before a race.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.finetuning.joint.config import JointConfig, before_race, config_before_race, continued
    from autotailor.finetuning.joint.training import JointResult, Purpose, train_jointly

__getattr__ = attach(__name__)
