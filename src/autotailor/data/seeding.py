"""Generators of PyTorch that are seeded by several numbers."""

from __future__ import annotations

import numpy as np
import torch


def generator(*words: int) -> torch.Generator:
    """A generator seeded by all words (seed, split, epoch, chunk ...); different words give independent streams."""
    state = np.random.SeedSequence([int(word) for word in words]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(state[0]) << 31 ^ int(state[1]))
