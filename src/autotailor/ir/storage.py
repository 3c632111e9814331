"""The file of a SuperNet: graph, weights, configuration of the space and sorting (``SuperNet.save``)."""

import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotailor.ir.errors import GraphError
from autotailor.ir.graph import Graph

SCHEMA = 2
READ = (1, 2)
"""Files of schema 1 have slices as they stand, and statistics of BatchNorm that are estimated anew."""

Sorting = Mapping[str, Sequence[int]]
"""Maps the name of an atom to the permutation of its channels that was applied to the original weights."""


SWELLS, SPARE = 16, 2**26
"""How much more than its size a file of PyTorch may unpack to: a factor, and bytes. PyTorch itself packs nothing."""


def check_unpacked(path: Path) -> None:
    """Raises GraphError for a file of PyTorch that unpacks to far more than itself; nothing is unpacked for that."""
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return  # an older file of PyTorch, which is not packed, or a damaged one, which PyTorch refuses
    if size > SWELLS * path.stat().st_size + SPARE:
        raise GraphError(
            f"{path} has {path.stat().st_size:,} bytes and unpacks to {size:,}, as no file of torch.save does; save "
            f"the weights again with torch.save(model.state_dict(), path)"
        )


def check_folder(path: Path) -> None:
    """Raises GraphError where the folder of a file to be written is missing."""
    if not path.parent.is_dir():
        raise GraphError(f"{path}: there is no folder {path.parent}; make it, or name a file in another one")


def write(
    path: Path, graph: Graph, space_config: Mapping[str, Any] | None, sorting: Sorting, slices: Mapping[str, Any]
) -> None:
    """Writes a file that ``torch.load(weights_only=True)`` reads; raises GraphError where its folder is missing.

    Args:
        path: of the file.
        graph: with its weights.
        space_config: configuration of the space.
        sorting: that was applied.
        slices: how weights are sliced: numbers, and tensors.
    """
    check_folder(path)
    torch.save(
        {
            "schema_version": SCHEMA,
            "graph": graph.describe(),
            "weights": {name: torch.from_numpy(np.array(w)) for name, w in graph.weights.items()},
            "space": None if space_config is None else dict(space_config),
            "sorting": {name: list(order) for name, order in sorting.items()},
            "slices": dict(slices),
        },
        str(path),
    )


def read(path: Path) -> tuple[Graph, Mapping[str, Any] | None, Sorting, Mapping[str, Any]]:
    """Reads what ``write`` wrote: the graph with its weights, the space's configuration, the sorting, and the slices.

    Raises:
        GraphError: the file is missing, damaged or of another version, or holds something else.
    """
    data = _content(path)
    if data["schema_version"] not in READ:
        raise GraphError(
            f"{path} has schema version {data['schema_version']}, this autotailor reads {SCHEMA}; compile it again"
        )
    try:
        weights = {name: tensor.numpy() for name, tensor in data["weights"].items()}
        return Graph.restore(data["graph"], weights), data["space"], data["sorting"], data.get("slices", {})
    except (AttributeError, KeyError, TypeError) as error:
        raise _refusal(path, "its content is not what autotailor writes") from error


def _content(path: Path) -> Mapping[str, Any]:
    """What a file of this package holds by name, the version among it."""
    check_unpacked(path)
    try:
        data = torch.load(str(path), weights_only=True)
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error
    except pickle.UnpicklingError as error:
        raise _refusal(path, "it is no file of PyTorch, or holds Python objects besides tensors") from error
    except Exception as error:  # PyTorch raises errors of many kinds for damaged files
        raise _refusal(path, "it is no file of PyTorch, or damaged") from error
    if not isinstance(data, Mapping) or "schema_version" not in data:
        raise _refusal(path, "it is a file of PyTorch that holds something else")
    return data


def _refusal(path: Path, reason: str) -> GraphError:
    return GraphError(
        f"{path} is no SuperNet that autotailor saved: {reason}; name a file such as results/MODEL/supernet.pt. A "
        "network's own weights go into autotailor.compile(SOURCE, weights=PATH)"
    )
