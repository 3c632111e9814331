"""Widths of controls by measured latency: as fast as the polished SubNet, or the widest within the budget."""

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
    """A network that was chosen by its latency.

    Attributes:
        width: share of the channels.
        latency: of the network, over that of the original network.
        polished: latency of the polished SubNet over that of the original network, measured in the same run.
    """

    width: float
    latency: float
    polished: float


@dataclass(frozen=True)
class Latencies:
    """Measured in one interleaved run.

    Attributes:
        by_width: width to the latency of the network of that width, over that of the original network.
        polished: latency of the polished SubNet over that of the original network.
    """

    by_width: Mapping[float, float]
    polished: float

    def as_fast(self) -> Match:
        """The network that is as fast as the polished SubNet; the choice favours it, see ``matched_widths``."""
        return self._match(matched_widths(pd.Series({POLISHED: self.polished}), self.by_width, (POLISHED,))[POLISHED])

    def widest(self, limit: float) -> Match:
        """The widest network whose latency over the original's is within a limit; the narrowest if none is."""
        within = [width for width, latency in self.by_width.items() if latency <= limit]
        return self._match(max(within, default=min(self.by_width)))

    def _match(self, width: float) -> Match:
        return Match(width, self.by_width[width], self.polished)


def latencies(
    make: Callable[[float], Graph], polished: Graph, original: Graph, device: DeviceConfig, folder: Path
) -> Latencies:
    """Measures the network of each width, the polished SubNet, and the original network in one interleaved run.

    Latencies are measured once and then read, so that training that was killed goes on with the same width.

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
    shares = {name: ms / found[ORIGINAL] for name, ms in found.items()}
    by_width = {float(name): share for name, share in shares.items() if name not in (POLISHED, ORIGINAL)}
    return Latencies(by_width, shares[POLISHED])


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
