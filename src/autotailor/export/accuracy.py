"""Accuracy of the exported ONNX file itself."""

from pathlib import Path

import numpy as np
import torch

from autotailor.data import EvaluationSet, resize
from autotailor.data.splits import check_labels
from autotailor.export.verification import as_tensors, run_onnx
from autotailor.ir.space.metric import FloatArray
from autotailor.task.registry import of

BATCH = 256


def accuracy_of_onnx(path: Path, evaluation: EvaluationSet) -> FloatArray:
    """How right an exported ONNX file is about each image of an evaluation set, in onnxruntime: ``[n]``.

    The mean is the score (``Task.shares``); of most tasks each number is from 0 to 1.
    """
    check_labels(evaluation)
    run, task = run_onnx(path), of(evaluation)
    import onnxruntime

    sides = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()[0].shape[2:]
    values = [
        task.judge(
            task.read(as_tensors(run(np.ascontiguousarray(resize(images, *sides).numpy()))), sides[-1]), targets
        ).kept
        for images, targets in evaluation.batches(BATCH)
    ]
    return task.shares(torch.cat(values).numpy())
