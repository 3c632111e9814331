"""What segments and heads of networks with exits cost: measured, predicted by a table, or multiply-accumulates.

A network is measured up to each exit, and each head alone. ncnn and PyTorch go on from an exit within one network, so
that a segment is the difference of two such networks. ONNX Runtime does not stop inside a session: there the segments
are networks of their own, and their sum includes what handing on costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from autotailor.exits.answers import Costs
from autotailor.exits.heads import Exit, head_alone, operators_of, segments, until
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.profiling import LUT, DeviceConfig, convert, mean_of_rounds, measure_rounds

CHAINED = "onnxruntime"
"""How the runtime is called that does not stop inside a network."""
COUNTED, MEASURED, TABLE = "counted", "measured on the device", "predicted by the look-up table"
PROPORTION = f"{TABLE}, heads that it lacks in proportion to their multiply-accumulates"
ENERGY = "energy_mj"


@dataclass(frozen=True)
class Priced:
    """What networks with exits cost, by name.

    Attributes:
        costs: of each.
        source: where the costs come from, for people.
        whole: of each network with all its exits, where that was measured, to compare the sums with.
        energy: millijoules of the same parts, where the look-up table has energies.
    """

    costs: Mapping[str, Costs]
    source: str
    whole: Mapping[str, float] = field(default_factory=dict)
    energy: Mapping[str, Costs] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class WithExits:
    """A network with exits (``heads.with_exits``) and their places."""

    graph: Graph
    places: tuple[Exit, ...]

    @property
    def heads(self) -> tuple[Graph, ...]:
        """Each head as a network of its own."""
        return tuple(head_alone(self.graph, place, number) for number, place in enumerate(self.places))

    @property
    def stops(self) -> tuple[Graph, ...]:
        """The network up to each exit with this head alone, and the whole network without heads."""
        return tuple(until(self.graph, number) for number in range(len(self.graph.outputs)))


def counted(network: WithExits) -> Costs:
    """Millions of multiply-accumulates."""
    heads = [_macs(head) for head in network.heads]
    reached = [_macs(stop) - head for stop, head in zip(network.stops, [*heads, 0.0], strict=True)]
    return Costs(_steps(reached), tuple(heads))


def predicted(
    net: SuperNet, subnet: SubNet, network: WithExits, latencies: Mapping[str, float], fusion: FusionRules
) -> Costs:
    """Milliseconds by the look-up table; a head that the table lacks in proportion to its multiply-accumulates.

    Args:
        net: of the SubNet.
        subnet: with the exits of ``network``.
        network: the SubNet with its exits.
        latencies: feature id to milliseconds; or to another unit that adds up.
        fusion: rules of the runtime.
    """
    sequence = net.sequence(subnet, fusion)
    spent = np.cumsum([latencies.get(each.feature.id, 0.0) for each in sequence])
    written = {name: position for position, each in enumerate(sequence) for name in each.outputs}
    macs = counted(network)
    factor = float(spent[-1]) / macs.whole
    shares = factor * np.cumsum(macs.segments)  # where an operator goes on behind the end of a block
    reached = [
        float(spent[written[place.tensor]] if place.tensor in written else share)
        for place, share in zip(network.places, shares[:-1], strict=True)
    ]
    heads = [operators_of(head, fusion) for head in network.heads]
    from_table = [sum(latencies[each.id] for each in head) if _holds(latencies, head) else None for head in heads]
    proportion = [factor * each for each in macs.heads]
    paid = (share if cost is None else cost for cost, share in zip(from_table, proportion, strict=True))
    return Costs(_steps([*reached, float(spent[-1])]), tuple(paid))


def _holds(column: Mapping[str, float], operators: Sequence[OperatorFeature]) -> bool:
    """Whether a column of the table has all of some operators."""
    return all(each.id in column for each in operators)


def by_table(
    net: SuperNet, subnets: Mapping[str, SubNet], networks: Mapping[str, WithExits], lut: LUT, fusion: FusionRules
) -> Priced:
    """What the look-up table predicts of networks; the arguments by name are those of ``predicted``."""
    latencies = lut.latencies()
    heads = [operators_of(head, fusion) for each in networks.values() for head in each.heads]
    source = TABLE if all(_holds(latencies, head) for head in heads) else PROPORTION
    costs = {name: predicted(net, subnets[name], each, latencies, fusion) for name, each in networks.items()}
    return Priced(costs, source, energy=_energies(net, subnets, networks, lut.column(ENERGY), fusion))


def _energies(
    net: SuperNet,
    subnets: Mapping[str, SubNet],
    networks: Mapping[str, WithExits],
    energies: Mapping[str, float],
    fusion: FusionRules,
) -> dict[str, Costs]:
    """Millijoules by the look-up table; empty where it does not have those of all operators of the network."""
    if not _holds(energies, net.operators(fusion=fusion)):
        return {}
    return {name: predicted(net, subnets[name], each, energies, fusion) for name, each in networks.items()}


def measured(
    networks: Mapping[str, WithExits], device: DeviceConfig, lut: LUT, rounds: int, seconds: float, folder: Path
) -> Priced:
    """Milliseconds on a device, all interleaved."""
    is_chain = device.runtime == CHAINED
    parts: dict[str, Graph] = {}
    for name, each in networks.items():
        cut = segments(each.graph, each.places) if is_chain else each.stops
        parts |= {f"{name}.stop{number}": graph for number, graph in enumerate(cut)}
        parts |= {f"{name}.head{number}": graph for number, graph in enumerate(each.heads)}
        parts[f"{name}.all"] = each.graph
    files = {}
    for name, graph in parts.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        onnx.save(to_onnx(graph, names=(graph.input, *graph.outputs)), str(place / "model.onnx"))
        convert(place / "model.onnx", place, device)
        files[name] = (place, tuple(graph.shapes[graph.input]))
    timings = measure_rounds(files, device, rounds, seconds_each=seconds, lut=lut)
    latency = {each.key: each.latency_ms for each in mean_of_rounds(timings)}
    costs = {name: _costs(name, len(each.places), latency, is_chain) for name, each in networks.items()}
    return Priced(costs, MEASURED, {name: latency[f"{name}.all"] for name in networks})


def _costs(name: str, exits: int, latency: Mapping[str, float], is_chain: bool) -> Costs:
    heads = [latency[f"{name}.head{number}"] for number in range(exits)]
    stops = [latency[f"{name}.stop{number}"] for number in range(exits + 1)]
    without = [max(stop - head, 0.0) for stop, head in zip(stops, [*heads, 0.0], strict=True)]
    return Costs(tuple(without) if is_chain else _steps(without), tuple(heads))


def _steps(reached: Sequence[float]) -> tuple[float, ...]:
    """Costs from one exit to the next, from those from the input to each; noise makes none negative."""
    return tuple(np.diff(np.maximum.accumulate(reached), prepend=0.0).tolist())


def _macs(graph: Graph) -> float:
    net = SuperNet.of(graph, {})
    return float(net.macs().predict(net.largest().to_array())[0])
