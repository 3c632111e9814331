"""NVIDIA's FastNAS (ModelOpt): channels of a trained network chosen by scores of single layers, to a number of MACs.

Needs the packages ``nvidia-modelopt``, ``torchprofile<0.1``, ``nvidia-ml-py`` and ``regex``, which the project's files
do not name, because ModelOpt breaks with later versions of some that it asks for.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from autotailor.data.splits import Batch


def available() -> bool:
    """Whether the packages can be imported."""
    try:
        import modelopt.torch.prune  # noqa: F401
        from torchprofile.profile import handlers  # noqa: F401  # version 0.1 has none, and ModelOpt needs them
    except ImportError:
        return False
    return True


def pruned(
    network: nn.Module,
    share: float,
    side: int,
    batches: list[Batch],
    score: Callable[[nn.Module], float],
    scores: Path,
) -> nn.Module:
    """A copy of a trained network with the channels that FastNAS keeps.

    Args:
        network: images ``[n, 3, side, side]`` to logits.
        share: of the MACs that may stay, 0 to 1.
        side: of the images, pixels.
        batches: of training images, from which statistics of BatchNorm are estimated for each candidate.
        score: of a candidate, the more the better.
        scores: file that keeps the scores of single layers, which do not depend on the share.
    """
    import modelopt.torch.prune as mtp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, _ = mtp.prune(
            copy.deepcopy(network),
            mode="fastnas",
            constraints={"flops": f"{100 * share:.1f}%"},
            dummy_input=torch.zeros(1, 3, side, side),
            config={
                "data_loader": batches,
                "score_func": score,
                "collect_func": lambda batch: batch[0],
                "checkpoint": str(scores),
            },
        )
    return result
