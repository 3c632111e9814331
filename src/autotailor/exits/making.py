"""The stage ``exits``: heads for the exported SubNets, what they cost, their files, and thresholds for each budget."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from autotailor.data import DataSplits, EvaluationSet
from autotailor.data.files.shown import as_pictures, in_base64
from autotailor.exits.answers import LAST, Answers, Costs, Policy
from autotailor.exits.asking import ask
from autotailor.exits.choice import Candidate, by_budget, failure_auroc, read_limits
from autotailor.exits.config import ExitsConfig
from autotailor.exits.costs import Priced, WithExits
from autotailor.exits.files import write_description
from autotailor.exits.guarantee import guaranteed
from autotailor.exits.heads import find_exits, with_exits
from autotailor.exits.thresholds import dominated
from autotailor.exits.training import train_heads
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.ir.execution.head import SIGMOID, SOFTMAX, find_head
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.serving.files.exits import ANSWERS

SHOWN, SIDE = 4, 64
"""Pictures of each exit that the report shows, and their side in pixels."""
PROBABILITIES = (SOFTMAX, SIGMOID)
"""Final activations of networks that return probabilities; heads of exits return logits."""
Price = Callable[[Mapping[str, WithExits]], Priced]
"""From networks to what their parts cost."""
Write = Callable[[str, WithExits, Path], Mapping[str, float]]
"""Writes the files of a network into a folder; says the largest error of each."""


@dataclass(frozen=True, eq=False)
class Headed:
    """A SubNet whose dominated exits are dropped.

    Attributes:
        network: with the exits that are left.
        dropped: places of dominated exits, with the accuracy on the validation set (percent) that an earlier one has.
        validation, test: the answers of the exits that are left.
    """

    network: WithExits
    dropped: Mapping[str, float]
    validation: Answers
    test: Answers

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the exits that are left."""
        return tuple(place.after for place in self.network.places)


def add_heads(
    net: SuperNet,
    subnet: SubNet,
    graph: Graph,
    data: DataSplits,
    config: ExitsConfig,
    polish: PolishConfig,
    work: Path,
    *,
    is_tested: bool = True,
) -> Headed:
    """Trains heads on a SubNet with the weights that it is exported with, and drops dominated ones.

    Args:
        net: of the SubNet.
        subnet: the SubNet.
        graph: of it, with its weights.
        data: training pictures teach, validation pictures tell which exits are dominated.
        config: of the exits.
        polish: see ``train_heads``.
        work: folder of checkpoints.
        is_tested: whether test pictures are asked; else ``test`` of the result is ``validation``.
    """
    places = find_exits(net, subnet, graph, config.after, config.head)
    heads = train_heads(graph, places, data, config, polish, work)
    whole = with_exits(graph, places, heads)
    seen = ask(whole, data.validation, config.confidence)
    tested = ask(whole, data.test, config.confidence) if is_tested else seen
    accuracy, worse = 100 * seen.right.mean(axis=0), dominated(seen)
    kept = [number for number in range(len(places)) if number not in worse]
    dropped = {places[number].after: float(accuracy[:number].max()) for number in worse}
    left = with_exits(graph, [places[each] for each in kept], [heads[each] for each in kept])
    network = WithExits(left, tuple(places[each] for each in kept))
    return Headed(network, dropped, seen.only(kept), tested.only(kept))


def make(
    headed: Mapping[str, Headed],
    data: DataSplits,
    config: ExitsConfig,
    price: Price,
    write: Write,
    folder: Path,
    unit: str,
    named_budgets: Mapping[str, Mapping[str, float | str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Prices networks with exits, writes their files, and chooses thresholds.

    Args:
        headed: by name of the export.
        data: the splits.
        config: of the exits.
        price: says what parts cost.
        write: writes files.
        folder: of all files; each export has one in it.
        unit: of costs.
        named_budgets: budgets of exits beside shares of the cost, by name, see ``search.budgets.of_exits``.

    Returns:
        The content of ``exits.json``.
    """
    priced = price({name: each.network for name, each in headed.items()})
    costs, energy = priced.costs, priced.energy
    candidates = [
        Candidate(name, each.names, costs[name], each.validation, each.test, energy.get(name))
        for name, each in headed.items()
    ]
    whole = max(each.whole for each in costs.values())
    limits = {name: read_limits(each, whole, unit) for name, each in named_budgets.items()}
    budgets = by_budget(candidates, data.validation.groups, data.test.groups, named_budgets=limits)
    networks = {}
    for name, each in headed.items():
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        errors = write(name, each.network, place)
        description = _network(each, costs[name], config)
        description |= {"errors": dict(errors), "worst_measured": priced.whole.get(name)}
        if name in energy:
            description["energy"] = {"segments": list(energy[name].segments), "heads": list(energy[name].heads)}
        description["probabilities"] = find_head(each.network.stops[-1]).activation in PROBABILITIES
        own = choices_of(budgets, name)
        common = {"confidence": config.confidence, "unit": unit, "classes": list(data.classes)}
        write_description(place, common | description | {"budgets": own})
        np.savez_compressed(place / ANSWERS, **_arrays(each), **_groups(data))
        networks[name] = description
    return {
        "unit": unit,
        "costs": priced.source,
        "confidence": config.confidence,
        "head": config.head,
        "guarantee": asdict(config.guarantee),
        "networks": networks,
        "budgets": budgets,
        "pictures": _pictures(budgets, headed, data),
    }


def _network(each: Headed, costs: Costs, config: ExitsConfig) -> dict[str, Any]:
    """What ``exits.json`` says of one export; accuracies in percent."""
    reach = costs.reach([True] * len(costs.heads))
    exits = {
        place.after: {
            "accuracy": 100 * float(each.test.right[:, number].mean()),
            "auroc": _number(failure_auroc(each.test.confidence[:, number], each.test.right[:, number])),
            "cost": float(reach[number]),
            "head": costs.heads[number],
        }
        for number, place in enumerate(each.network.places)
    }
    safe = guaranteed(each.validation, costs, config.guarantee)
    return {
        "exits": exits,
        "dropped": dict(each.dropped),
        "accuracy": 100 * float(each.test.right[:, -1].mean()),
        "whole": costs.whole,
        "worst": float(reach[-1]),
        "segments": list(costs.segments),
        "heads": list(costs.heads),
        "guaranteed": safe and _safe(safe, each, costs),
    }


def choices_of(budgets: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Mapping[str, Any]]:
    """What is chosen at the budgets for which an export is, from the ``budgets`` of ``exits.json``."""
    return {key: row["with"] for key, row in budgets.items() if row["with"] and row["with"]["name"] == name}


def _safe(policy: Policy, each: Headed, costs: Costs) -> dict[str, Any]:
    seen = policy.on(each.test, costs)
    lost = float((each.test.right[:, -1] - policy.right(each.test)).mean())
    thresholds = dict(zip(each.names, policy.thresholds, strict=True))
    return {"thresholds": thresholds, "expected": seen.expected, "worst": policy.worst, "lost": 100 * lost}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _arrays(each: Headed) -> dict[str, Any]:
    splits = {"validation": each.validation, "test": each.test}
    return {f"{name}_{key}": getattr(split, key) for name, split in splits.items() for key in ("confidence", "right")}


def _groups(data: DataSplits) -> dict[str, Any]:
    return {f"{name}_groups": getattr(data, name).groups for name in ("validation", "test")}


def _pictures(
    budgets: Mapping[str, dict[str, Any]], headed: Mapping[str, Headed], data: DataSplits
) -> dict[str, dict[str, Any]]:
    """Test pictures in Base64 that leave at each exit of the choice that divides them most, the last one included."""
    chosen = {name: row["with"] for name, row in budgets.items() if row["with"] and row["with"]["leave"][LAST] < 1}
    if not chosen or data.signal:
        return {}
    budget, most = max(chosen.items(), key=lambda each: _division(each[1]["leave"].values()))
    test = headed[most["name"]].test
    left = Policy(tuple(most["thresholds"].values()), 0, 0, 0, 0).leave(test.confidence)
    by_exit = {}
    for number, (name, share) in enumerate(most["leave"].items()):
        positions = np.flatnonzero(left == number)[:SHOWN]
        if len(positions):
            pictures = [_png(each) for each in as_pictures(_images(data.test, positions), data)]
            by_exit[name] = {"network": most["name"], "budget": budget, "share": share, "png": pictures}
    return by_exit


def _division(shares: Iterable[float]) -> float:
    """How evenly shares divide a whole: their entropy."""
    return -sum(share * math.log(share) for share in shares if share)


def _images(images: EvaluationSet, positions: Any) -> torch.Tensor:
    return torch.cat([batch for batch, _ in images.part(positions.astype(np.int64)).batches(SHOWN)])


def _png(picture: Any) -> str:
    """A small picture in Base64."""
    picture.thumbnail((SIDE, SIDE))
    return in_base64(picture, "PNG")
