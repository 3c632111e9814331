"""Fusion rules: what a runtime merges into one kernel."""

from dataclasses import dataclass

from autotailor.ir.pattern import Pattern


@dataclass(frozen=True)
class FusionRules:
    """What a runtime merges into one kernel (paper, section 4.2.1: user-defined fusion rules).

    Attributes:
        name: for messages and hashes.
        folds: (producer, follower) kinds where the follower disappears into the producer's weights.
        fuses: (producer, follower) kinds where the follower runs inside the producer's kernel.
        free: kinds that take no time (views).
        patterns: subgraphs that run as one operator; of two that overlap the earlier one is taken.
        sums: producers that add a second activation of their output's shape (a residual) inside their kernel, before
            their followers.
    """

    name: str
    folds: frozenset[tuple[str, str]] = frozenset()
    fuses: frozenset[tuple[str, str]] = frozenset()
    free: frozenset[str] = frozenset()
    patterns: tuple[Pattern, ...] = ()
    sums: frozenset[str] = frozenset()
