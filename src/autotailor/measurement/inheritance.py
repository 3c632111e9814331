"""What polishing was worth: the accuracy of exported SubNets with the weights that they inherit from the SuperNet."""

from collections.abc import Mapping

import pandas as pd

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.config import CalibrationConfig
from autotailor.accuracy.evaluation import percent
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.data import DataSplits
from autotailor.finetuning.polishing import Exported
from autotailor.ir.supernet import SuperNet
from autotailor.progress.bars import track
from autotailor.task.registry import of, score_of


def inheritance(
    net: SuperNet, exported: Mapping[str, Exported], data: DataSplits, calibration: CalibrationConfig
) -> pd.DataFrame:
    """Where the weights of exported SubNets come from.

    Args:
        net: the trained SuperNet.
        exported: SubNets by name of the export.
        data: the splits; accuracy is measured on the test set.
        calibration: of the BatchNorm statistics of inherited weights.

    Returns:
        Columns name, weights (``inherited`` or ``polished``), accuracy_inherited (percent, with recalibrated
        statistics, on the test set).
    """
    subnets = list(dict.fromkeys(each.subnet for each in exported.values()))
    evaluated = Evaluator(net.module(), Calibrator(data, calibration), data.test, workers=1).all(subnets)
    shown = track(evaluated, description=f"inherited {score_of(data).name}", total=len(subnets))
    task = of(data)
    scores = {subnet: percent(task.shares(outcome.kept)) for subnet, outcome in shown}
    rows = [(name, each.weights, scores[each.subnet]) for name, each in exported.items()]
    return pd.DataFrame(rows, columns=["name", "weights", "accuracy_inherited"])
