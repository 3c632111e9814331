"""What a network with exits answers on an evaluation set."""

from __future__ import annotations

import numpy as np
import torch

from autotailor.accuracy.evaluation import each_image
from autotailor.data import EvaluationSet
from autotailor.exits.answers import CONFIDENCES, Answers
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.task.registry import of


def confidence(logits: torch.Tensor, kind: str) -> torch.Tensor:
    """How sure rows of logits are, ``[n, classes]`` to ``[n]``, by a name of ``CONFIDENCES``."""
    largest = logits.softmax(dim=1).topk(min(2, logits.shape[1]), dim=1).values
    return largest[:, 0] if kind == CONFIDENCES[0] else largest[:, 0] - largest[:, -1]


def ask(graph: Graph, images: EvaluationSet, kind: str) -> Answers:
    """The answers of all exits to each image.

    Args:
        graph: with exits (``heads.with_exits``).
        images: with labels.
        kind: of confidence.
    """
    task, side = of(images), graph.shapes[graph.input][-1]
    resolution = side if graph.shapes[graph.input][-2] == side else 0

    def sure(outputs: tuple[torch.Tensor, ...], _: torch.Tensor) -> torch.Tensor:
        return torch.stack([confidence(logits, kind) for logits in outputs[:-1]], dim=1)

    def right(outputs: tuple[torch.Tensor, ...], targets: torch.Tensor) -> torch.Tensor:
        return torch.stack([task.judge(each.flatten(1), targets).kept for each in outputs], dim=1)

    answers = each_image(GraphModule(graph), images, resolution, sure, right)
    return Answers(*(np.asarray(each, dtype=np.float64) for each in answers))
