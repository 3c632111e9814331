"""Checkpoints: finds the state dict in a file, and brings its names to those of the network.

Training scripts wrap a state dict (``{"model": ..., "epoch": 3}``), keep an average of the weights beside it, and put
``module.`` (DistributedDataParallel), ``_orig_mod.`` (torch.compile) or ``model.`` (Lightning) before every name.
"""

import argparse
import logging
import pathlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from autotailor.compiler.library import reason
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Shape
from autotailor.ir.storage import check_unpacked

logger = logging.getLogger(__name__)

State = dict[str, torch.Tensor]

AVERAGES = ("state_dict_ema", "model_ema", "ema_state_dict", "model_ema_state_dict", "ema_model", "ema")
WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "network", "net", "module", "weights", "params")
COUNTERS = ("num_batches_tracked", "n_averaged")  # of BatchNorm and of averaged weights; evaluation does not use them
COMPILED = "_orig_mod."
_AVERAGE = re.compile(r"(?:^|[._])ema[._]")  # in a prefix
_GLOBAL = re.compile(r"(?:Unsupported (?:global|class)\b\D*?|GLOBAL )([\w.]+\.\w+)")
RESAVE = "save a state dict with torch.save(model.state_dict(), path)"
LISTED = 4  # names in a message


def read_checkpoint(path: str | Path) -> State:
    """The state dict in a ``.safetensors`` file or in a file of ``torch.save``; averaged weights are preferred.

    Raises:
        GraphError: the file is missing or damaged, holds Python objects besides tensors, or holds no state dict.
    """
    if not Path(path).is_file():
        raise GraphError(f"weights file {path} does not exist; put the state dict of the network there")
    content = _safetensors(Path(path)) if str(path).endswith(".safetensors") else _unpickled(Path(path))
    try:
        entry = _state_in(content, "")
    except RecursionError as error:
        raise GraphError(f"weights file {path}: its dictionaries are nested too deeply; {RESAVE}") from error
    if entry is None:
        kind = sorted(map(str, content))[:LISTED] if isinstance(content, Mapping) else type(content).__name__
        raise GraphError(
            f"weights file {path} holds no state dict, but {kind}; save one with torch.save(model.state_dict(), path)"
        )
    place, state = entry
    if place:
        logger.info("weights: taken from %s of %s", place, path)
    return {name.replace(COMPILED, ""): tensor for name, tensor in state.items()}


def _safetensors(path: Path) -> State:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(str(path))
    except (SafetensorError, OSError) as error:
        raise GraphError(f"weights file {path} is no safetensors file: {reason(error)}; copy it again") from error


def _unpickled(path: Path) -> Any:
    """The content that ``torch.load`` reads without running code; plain values of training scripts are allowed."""
    import numpy as np

    check_unpacked(path)
    harmless: list[Any] = [argparse.Namespace, pathlib.PosixPath, pathlib.WindowsPath, np.dtype]
    harmless += [type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "b1")]
    scalar: Any = np.float64(0).__reduce__()[0]
    harmless += [(scalar, f"{module}.multiarray.scalar") for module in ("numpy.core", "numpy._core")]
    try:
        with torch.serialization.safe_globals(harmless):
            return torch.load(str(path), weights_only=True, map_location="cpu")
    except Exception as error:
        if (named := _GLOBAL.search(str(error))) is not None:
            raise GraphError(
                f"weights file {path} holds Python objects ({named[1]}) besides tensors, and reading them would run "
                f"code; load the file in the project that made it, and call torch.save(model.state_dict(), path)"
            ) from error
        raise GraphError(
            f"weights file {path} cannot be read ({type(error).__name__}: {reason(error).split('. ')[0]}); copy it "
            f"again, or save a state dict with torch.save(model.state_dict(), path)"
        ) from error


def _state_in(content: Any, place: str) -> tuple[str, State] | None:
    """The place of a state dict among the wrappers (``model.state_dict``), and the state dict; None without one."""
    if not isinstance(content, Mapping) or not content:
        return None
    for key in (*AVERAGES, *WRAPPERS):
        entry = _state_in(content.get(key), f"{place}.{key}".strip("."))
        if entry is not None:
            return entry
    tensors = {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}
    if any(tensor.ndim for tensor in tensors.values()):  # others are counters, of averages for instance
        return place, tensors
    inner = [name for name, value in content.items() if isinstance(value, Mapping)]
    if inner and inner[0] in (*AVERAGES, *WRAPPERS):  # was looked into above; twice at each level would be without end
        return None
    return _state_in(content[inner[0]], f"{place}.{inner[0]}".strip(".")) if len(inner) == 1 else None


def fit(state: State, expected: Mapping[str, Shape], path: str | Path, remedy: str) -> State:
    """A state dict under a network's names.

    Args:
        state: of a checkpoint. A prefix before the network's names is removed, and tensors with another prefix (a
            loss, a teacher) are left out. Of several networks that fit, the averaged one (``model_ema.``) is taken, and
            without an average the one behind a usual prefix (``model.``, ``module.``).
        expected: the network's names with their shapes.
        path: of the checkpoint, for the message.
        remedy: of the message, where the checkpoint does not fit.

    Raises:
        GraphError: names are missing or unexpected, shapes differ, or several networks fit.
    """
    needed = {name for name in expected if not name.endswith(COUNTERS)}
    prefix = _prefix(state, expected, needed, path)
    own = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
    own = {name: tensor for name, tensor in own.items() if not name.endswith(COUNTERS) or name in expected}
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items()}
    misfit = _Misfit(
        missing=[name for name in expected if name in needed and name not in own],
        unexpected=[name for name in own if name not in expected],
        shapes=[(name, shapes[name], size) for name, size in expected.items() if shapes.get(name, size) != size],
    )
    if misfit:
        raise GraphError(f"weights file {path} does not fit the network: {misfit}; {misfit.hint() or remedy}")
    return own


def _prefix(state: State, expected: Mapping[str, Shape], needed: set[str], path: str | Path) -> str:
    """The prefix before the network's names in a checkpoint, by which most of the needed names are found.

    Raises:
        GraphError: several prefixes hold all needed names with other tensors, and no name says which ones are wanted.
    """
    if not needed or needed <= state.keys():
        return ""
    ends = {name.rsplit(".", 1)[-1] for name in needed}
    candidates = {""}
    for name in state:
        parts = name.split(".")
        if parts[-1] in ends:
            candidates.update(".".join(parts[:i]) + "." for i in range(1, len(parts)))
    ordered = sorted(candidates, key=lambda prefix: (len(prefix), prefix))
    networks = _networks(ordered, state, {name: expected[name] for name in needed})
    if networks:
        return _wanted(networks, path)
    return max(ordered, key=lambda prefix: sum(prefix + name in state for name in needed))


def _networks(prefixes: Sequence[str], state: State, shapes: Mapping[str, Shape]) -> list[str]:
    """The prefixes that hold a whole network each: no prefix begins with another one, and no two hold equal tensors."""
    networks: list[str] = []
    for prefix in prefixes:
        own = {name: state.get(prefix + name) for name in shapes}
        fits = all(tensor is not None and tuple(tensor.shape) == shapes[name] for name, tensor in own.items())
        inside = prefix.startswith(tuple(networks))
        if fits and not inside and not any(all(_equal(own[n], state[other + n]) for n in own) for other in networks):
            networks.append(prefix)
    return networks


def _equal(some: torch.Tensor | None, other: torch.Tensor) -> bool:
    return some is not None and some.dtype == other.dtype and torch.equal(some, other)


def _wanted(prefixes: Sequence[str], path: str | Path) -> str:
    """The one of several networks that is an average; without one, that which training scripts wrap.

    Raises:
        GraphError: neither the one nor the other is a single network.
    """
    averages = [prefix for prefix in prefixes if _AVERAGE.search(prefix)]
    plain = [prefix for prefix in prefixes if set(prefix.split(".")[:-1]) <= set(WRAPPERS)]
    chosen = averages or plain or prefixes
    if len(chosen) > 1:
        raise GraphError(
            f"weights file {path} holds several networks that fit ({_list(chosen)}), and their weights differ; save "
            f"the state dict of the one that is wanted alone"
        )
    if len(prefixes) > 1:
        logger.info("weights: those before which %s stands, not %s, of %s", chosen[0], _list(prefixes), path)
    return chosen[0]


@dataclass(frozen=True)
class _Misfit:
    """How a checkpoint differs from a network."""

    missing: Sequence[str]
    unexpected: Sequence[str]
    shapes: Sequence[tuple[str, Shape, Shape]]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.shapes)

    def __str__(self) -> str:
        other = [f"{name} is {list(there)}, not {list(here)}" for name, there, here in self.shapes]
        groups = (("missing", self.missing), ("unexpected", self.unexpected), ("of another shape", other))
        return "; ".join(f"{len(names)} {what} ({_list(names)})" for what, names in groups if names)

    def hint(self) -> str:
        """The remedy where only the number of classes differs, "" otherwise."""
        rows = {(there[0], here[0]) for _, there, here in self.shapes if there and here and there[1:] == here[1:]}
        if self.missing or self.unexpected or len(self.shapes) > 2 or len(rows) != 1:
            return ""
        (there, here) = rows.pop()
        return f"it belongs to a network with {there} classes, this one has {here}: set model.num_classes to {there}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + (" ..." if len(names) > LISTED else "")
