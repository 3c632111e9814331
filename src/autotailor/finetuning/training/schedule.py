"""The learning rate over the steps of a training."""

import math

from autotailor.finetuning.training.config import LoopConfig


def learning_rate(config: LoopConfig, step: int, steps: int) -> float:
    """Learning rate at a step: a linear warm-up times half a cosine that falls to 0 over all ``steps``."""
    warm = config.warmup * steps
    factor = min(1.0, (step + 1) / warm) if warm > 0 else 1.0
    return config.lr * factor * 0.5 * (1 + math.cos(math.pi * step / max(1, steps)))
