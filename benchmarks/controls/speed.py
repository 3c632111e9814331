"""Controls that are as fast as the polished SubNet of their budget: the width whose measured latency matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import pandas as pd

from autotailor.artifacts import read_json, write_json
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.graph import Graph
from autotailor.measurement.comparison import matched_widths
from autotailor.profiling import DeviceConfig, convert, measure_networks

WIDTHS = tuple(step / 20 for step in range(1, 21))
"""Widths that are measured."""
SECONDS = 2.0
"""Of measuring, for each network."""
ORIGINAL, POLISHED = "original", "polished"


@dataclass(frozen=True)
class Match:
    """The network that is as fast as a polished SubNet.

    Attributes:
        width: share of the channels.
        latency: of the network, over that of the original network.
        polished: latency of the polished SubNet over that of the original network, measured in the same run.
    """

    width: float
    latency: float
    polished: float


def match(
    make: Callable[[float], Graph], polished: Graph, original: Graph, device: DeviceConfig, folder: Path
) -> Match:
    """Measures the network of each width, the polished SubNet, and the original network in one interleaved run.

    The choice favours the control, see ``matched_widths``. Latencies are measured once and then read, so that training
    that was killed goes on with the same width.

    Args:
        make: width to network.
        polished: the SubNet's graph.
        original: the original network's graph.
        device: on which latencies are measured.
        folder: of the converted networks and of ``latencies.json``.
    """
    path = folder / "latencies.json"
    if not path.is_file():
        graphs = {POLISHED: polished, ORIGINAL: original} | {f"{width:g}": make(width) for width in WIDTHS}
        write_json(path, {"ms": measured(graphs, device, folder)})
    found: Mapping[str, float] = read_json(path)["ms"]
    widths = {float(name): ms for name, ms in found.items() if name not in (POLISHED, ORIGINAL)}
    width = matched_widths(pd.Series(found), widths, (POLISHED,))[POLISHED]
    return Match(width, widths[width] / found[ORIGINAL], found[POLISHED] / found[ORIGINAL])


def measured(graphs: Mapping[str, Graph], device: DeviceConfig, folder: Path) -> dict[str, float]:
    """Latencies (ms) of networks by name, measured in one interleaved run."""
    networks = {}
    for name, graph in graphs.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        onnx.save(to_onnx(graph), str(place / "model.onnx"))
        convert(place / "model.onnx", place, device)
        networks[name] = (place, graph.shapes[graph.input])
    return {row.key: row.latency_ms for row in measure_networks(networks, device, seconds_each=SECONDS)}
