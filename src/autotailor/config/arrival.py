"""Files of conf that depend on where the weights come from, unless the user names others.

Weights that the workflow trains from scratch gain by joint training. Weights that arrive trained lose by it what the
pictures at hand cannot give back, so that SubNets are polished alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

AUTO, PRETRAIN = "auto", "pretrain"
ARRIVED = {"finetune": "none", "polish": "given"}
"""The file of each group for weights that arrive; ``auto`` itself is that for weights that the workflow trains."""


def for_arrived(weights: Any, choices: Mapping[str, str], named: Collection[str]) -> list[str]:
    """Overrides that choose the files of weights that arrive, where ``auto`` was chosen.

    Args:
        weights: ``model.weights``.
        choices: name of the file of each group.
        named: dotted keys that the user's overrides change; a rate that is named takes the place of the range test.
    """
    if weights == PRETRAIN:
        return []
    found = [f"{group}={name}" for group, name in ARRIVED.items() if choices.get(group) == AUTO]
    is_given = "polish=given" in found or choices.get("polish") == ARRIVED["polish"]
    if is_given and "polish.lr" in named and "polish.rates" not in named:
        found.append("polish.rates=[]")
    return found
