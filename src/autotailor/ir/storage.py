"""The file of a SuperNet: graph, weights, configuration of the space and sorting (``SuperNet.save``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotailor.ir.errors import GraphError
from autotailor.ir.graph import Graph

SCHEMA = 1

Sorting = Mapping[str, Sequence[int]]
"""Maps the name of an atom to the permutation of its channels that was applied to the original weights."""


def write(path: Path, graph: Graph, space_config: Mapping[str, Any] | None, sorting: Sorting) -> None:
    """Writes a file that ``torch.load(weights_only=True)`` reads."""
    torch.save(
        {
            "schema_version": SCHEMA,
            "graph": graph.describe(),
            "weights": {name: torch.from_numpy(np.array(w)) for name, w in graph.weights.items()},
            "space": None if space_config is None else dict(space_config),
            "sorting": {name: list(order) for name, order in sorting.items()},
        },
        str(path),
    )


def read(path: Path) -> tuple[Graph, Mapping[str, Any] | None, Sorting]:
    """Reads what ``write`` wrote: the graph with its weights, the configuration of the space, and the sorting.

    Raises:
        GraphError: the file is missing, damaged or of another version.
    """
    try:
        data = torch.load(str(path), weights_only=True)
        schema = data["schema_version"]
    except Exception as error:
        raise GraphError(f"{path} is no SuperNet that autotailor saved: {error}") from error
    if schema != SCHEMA:
        raise GraphError(f"{path} has schema version {schema}, this autotailor reads {SCHEMA}; compile it again")
    weights = {name: tensor.numpy() for name, tensor in data["weights"].items()}
    return Graph.restore(data["graph"], weights), data["space"], data["sorting"]
