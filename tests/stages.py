"""The rules of a whole run of the embedded network."""

from autotailor import stages

ELSEWHERE = {"moments", "distil", "polish", "train_pool", "make_pool", "heads", "screen", "exits", "compare", "fleet"}
"""Rules of weights that arrive, of runs that polish, of pools, exits, comparisons, and several networks or devices."""
STAGES = tuple(name for name in stages.STAGES if name not in ELSEWHERE)
