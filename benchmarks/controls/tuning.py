"""The search for a learning rate, alike for all methods."""

from __future__ import annotations

from collections.abc import Callable

FACTOR = 3.0
"""Ratio of neighbouring learning rates."""
MOST = 5
"""Most learning rates that are tried."""


def tune(trial: Callable[[float], float], start: float) -> dict[float, float]:
    """Tries a learning rate and its two neighbours, then goes on at the end where the best one lies.

    Args:
        trial: learning rate to accuracy on the validation set.
        start: the first learning rate.

    Returns:
        Learning rate to accuracy, by rising learning rate. The best one lies inside, unless ``MOST`` ended the search.
    """
    tried = {lr: trial(lr) for lr in (start, start / FACTOR, start * FACTOR)}
    while len(tried) < MOST and at_end(tried):
        lr = best(tried) / FACTOR if best(tried) == min(tried) else best(tried) * FACTOR
        tried[lr] = trial(lr)
    return dict(sorted(tried.items()))


def best(tried: dict[float, float]) -> float:
    """The learning rate with the highest accuracy; of equals the first that was tried."""
    return max(tried, key=lambda lr: tried[lr])


def at_end(tried: dict[float, float]) -> bool:
    """Whether the best learning rate is the lowest or the highest that was tried."""
    return best(tried) in (min(tried), max(tried))
