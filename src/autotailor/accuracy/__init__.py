"""Accuracy of SubNets: evaluation, recalibration, and the journal of evaluations.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.accuracy.backgrounds import find_transparent
    from autotailor.accuracy.calibration import Calibrator, adopt_statistics, calibrate
    from autotailor.accuracy.config import CalibrationConfig, MomentsConfig
    from autotailor.accuracy.errors import AccuracyError
    from autotailor.accuracy.evaluation import correctness, evaluate
    from autotailor.accuracy.moments import prepare
    from autotailor.accuracy.teaching import with_labels

__getattr__ = attach(__name__)
