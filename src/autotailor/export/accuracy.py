"""Accuracy of the exported ONNX file itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from autotailor.accuracy.evaluation import answered
from autotailor.data import EvaluationSet, resize
from autotailor.data.splits import check_labels
from autotailor.export.verification import run_onnx

BATCH = 256


def accuracy_of_onnx(path: Path, evaluation: EvaluationSet) -> npt.NDArray[np.bool_]:
    """Correctness of each image of an evaluation set, classified by an exported ONNX file in onnxruntime: ``[n]``."""
    check_labels(evaluation)
    run = run_onnx(path)
    import onnxruntime

    side = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()[0].shape[-1]
    correct = [
        answered(torch.from_numpy(run(np.ascontiguousarray(resize(images, side).numpy()))), labels)
        for images, labels in evaluation.batches(BATCH)
    ]
    return np.asarray(torch.cat(correct).numpy())
