"""Answers of exits that do not exist: each picture has a difficulty, and each exit says how sure it is, roughly."""

import numpy as np

from autotailor.exits.answers import Answers


def answers(pictures: int, seed: int, strength: tuple[float, ...] = (0.6, 1.2, 2.0), noise: float = 0.5) -> Answers:
    """Exits of rising strength, the last one included, on independent pictures."""
    random = np.random.default_rng(seed)
    margin = random.normal(size=(pictures, 1)) + strength + noise * random.normal(size=(pictures, len(strength)))
    said = margin + noise * random.normal(size=margin.shape)
    confidence = 1 / (1 + np.exp(-2 * np.abs(said)))
    return Answers(confidence[:, :-1], (margin > 0).astype(float))
