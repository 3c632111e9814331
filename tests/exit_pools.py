"""A pool of one small network with exits, as the rule ``exits`` writes it, and what its exits answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.exits.files import write_files
from autotailor.export.verification import arrays, as_arrays
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.pool.exported import ExportedMember
from autotailor.pool.writing import OWN, Facts, Origin, write_pool
from autotailor.profiling import exporting_runtime
from autotailor.serving.files.exits import Confidence, Exit

Array = npt.NDArray[np.float32]
OPTIONS = {"use_fp16_arithmetic": False, "use_fp16_packed": False, "use_fp16_storage": False}
NAME = "largest"


@dataclass(frozen=True, eq=False)
class ExitPool:
    """The pool.

    Attributes:
        folder: of the pool.
        images: some pictures, ``[n, 3, r, r]``.
        answers: of each exit to them in PyTorch, the last one's behind, ``[n, classes]`` each.
        exits: names of the exits.
    """

    folder: Path
    images: Array
    answers: tuple[Array, ...]
    exits: tuple[str, ...]


def exit_pool(
    net: Any, headed: Any, folder: Path, reach: tuple[float, ...] = (0.2, 0.5, 1.0), count: int = 4
) -> ExitPool:
    """Writes the pool.

    Args:
        net: a SuperNet.
        headed: makes a SubNet of it with random heads, see ``tests/unit/exits/conftest.py``.
        folder: for the files.
        reach: milliseconds to each exit and to the end, which the pool claims.
        count: of the pictures.
    """
    seed = next(seed for seed in range(9) if len(headed(net, "full", seed).places) == 2)
    network, subnet = headed(net, "full", seed), net.sample(np.random.default_rng(seed))
    shape = network.graph.shapes[network.graph.input]
    images = np.random.default_rng(1).normal(size=(count, *shape[1:])).astype(np.float32)
    write_files(network, net.names, folder / NAME, images, exporting_runtime(), 1e-4)
    with torch.no_grad():
        answers = arrays(as_arrays(GraphModule(network.graph).eval()(torch.from_numpy(images))))
    param, weights = (folder / NAME / file for file in exporting_runtime().files)
    member = ExportedMember(subnet, param, weights, images, answers[-1], tuple(answers[:-1]), NAME)
    names = tuple(place.after for place in network.places)
    exits = tuple(Exit(name, 60.0 + at, reach[at], f"out{at}") for at, name in enumerate(names))
    thresholds = (("first", (0.0, None)), ("second", (None, 0.0)), ("none", (None, None)), ("60%", (0.5, 0.5)))
    whole = reach[-1]
    split = (0.6 * whole, 0.3 * whole, 0.1 * whole)
    facts = Facts(90.0, None, True, whole, None, whole, None, split, 1.0, None, exits, thresholds)
    origin = Origin("tiny", "host", 1, OPTIONS, weights=OWN, confidence=Confidence("probability", "logits"))
    write_pool(folder / "pool", net, [(member, facts)], origin)
    return ExitPool(folder / "pool", images, tuple(answers), names)
