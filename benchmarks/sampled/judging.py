"""The judgement of ``sampling.py``: the accuracy that SubNets inherit, on the test set."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from learnt import learnt_accuracy

from autotailor import artifacts, profiling, search, sensitivity
from autotailor.accuracy.calibration import resolution_of
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.supernet import SuperNet
from sampled.training import Row, Run, compiled

PANEL = 200
PARTS = ("low", "middle", "high")
BUDGETS = ("30%", "35%", "50%", "65%", "80%")
HALF = "50%"


class Judge:
    """Evaluates one variant's SuperNet and writes its row.

    Args:
        run: the variant.
        lut: LUT of the model; None lets MACs stand for latency.
    """

    def __init__(self, run: Run, lut: Path | None) -> None:
        self._run, self._lut = run, lut
        calibration = run.configuration["finetune"]["calibration"]
        self._config = sensitivity.SensitivityConfig.from_section(run.configuration["sensitivity"], calibration)
        self._test = replace(run.data, validation=run.data.test, fingerprint=f"{run.data.fingerprint}, test")

    def write(self, trained: tuple[SuperNet, Row]) -> None:
        """Writes the row of a trained SuperNet: costs, accuracies in percent, ``half``'s share of the latency."""
        net, costs = trained
        cost, own = self._cost(net), compiled(self._run, self._run.space)
        drawn = list(panel(own, self._cost(own)).items())[: self._run.subnets]
        cells = {transfer(subnet, net): cell for subnet, cell in drawn}
        smallest, chosen = transfer(own.smallest(), net), self._chosen(net, cost)
        half = chosen[HALF]
        subnets = [*cells, net.largest(), smallest, *chosen.values()]
        accuracy = {
            id_: found.accuracy
            for id_, found in sensitivity.measure_accuracies(
                net, self._test, subnets, self._config, self._run.folder / "test.jsonl"
            ).items()
        }
        means = {
            cell: float(np.mean([accuracy[subnet.id] for subnet, at in cells.items() if at == cell]))
            for cell in sorted(set(cells.values()))
        }
        row = {
            "model": self._run.model,
            "variant": self._run.variant,
            "seed": self._run.seed,
            "subnets": len(cells),
            **costs,
            "panel": float(np.mean([accuracy[subnet.id] for subnet in cells])),
            **means,
            "largest": accuracy[net.largest().id],
            "smallest": accuracy[smallest.id],
            "half": accuracy[half.id],
            "front": float(np.mean([accuracy[subnet.id] for subnet in chosen.values()])),
            "half_share": float(cost.predict(half.to_array())[0] / cost.predict(net.largest().to_array())[0]),
        }
        artifacts.write_json(self._run.result, row)

    def _cost(self, net: SuperNet) -> Metric:
        """Latency by the LUT, or MACs."""
        if self._lut is None:
            return net.macs()
        device = profiling.DeviceConfig.from_section(self._run.configuration["device"])
        return net.latency(profiling.LUT.read(self._lut).latencies(), profiling.fusion_rules(device))

    def _chosen(self, net: SuperNet, cost: Metric) -> dict[str, SubNet]:
        """The SubNets that the pipeline would export for shares of the largest SubNet's latency, by validation."""
        folder, data = self._run.folder, self._run.data
        config = search.SearchConfig.from_section(self._run.configuration["search"])
        predicted = learnt_accuracy(net, data, self._config, config, cost, list(BUDGETS), folder)
        objectives = search.Objectives(predicted, cost)
        measure = partial(
            sensitivity.measure_accuracies, net, data, config=self._config, journal=folder / "candidates.jsonl"
        )
        front = search.search(objectives, config).front
        chosen = search.choose(objectives, front, list(BUDGETS), measure, config).subnets
        return {budget: chosen[f"budget_{number:02d}"] for number, budget in enumerate(BUDGETS, 1)}


def transfer(subnet: SubNet, net: SuperNet) -> SubNet:
    """The same SubNet in the space of another SuperNet, which offers the same choices and perhaps more."""
    return SubNet.from_json(net.space, subnet.to_json())


def panel(net: SuperNet, cost: Metric) -> dict[SubNet, str]:
    """The fixed random SubNets, each with its resolution and third of that resolution's range of costs.

    Independent draws of all variables would hardly ever cost as much as the upper third. Here a random share of the
    variables is drawn, and the others stand at one of their ends. The draws depend on the space and the costs alone.
    """
    random = np.random.default_rng(0)
    resolutions, position = len(net.space[RESOLUTION].choices), net.space.positions[RESOLUTION]

    def at(subnet: SubNet, index: int) -> SubNet:
        return SubNet(net.space, (*subnet.indices[:position], index, *subnet.indices[position + 1 :]))

    def costs(*subnets: SubNet) -> list[float]:
        return [float(value) for value in cost.predict(stack(subnets))]

    ends = (net.smallest(), net.largest())
    bounds = [costs(*(at(end, index) for end in ends)) for index in range(resolutions)]
    wanted = -(-PANEL // (resolutions * len(PARTS)))
    found: dict[SubNet, str] = {}
    full: Counter[str] = Counter()
    while len(found) < PANEL:
        index = int(random.integers(resolutions))
        low, high = bounds[index]
        subnet = at(_spread(net, random), index)
        third = min(2, int(3 * (costs(subnet)[0] - low) / (high - low)))
        name = f"{resolution_of(subnet)}_{PARTS[third]}"
        if subnet not in found and full[name] < wanted:
            found[subnet] = name
            full[name] += 1
    return found


def _spread(net: SuperNet, random: np.random.Generator) -> SubNet:
    """A SubNet of which a random share of the variables stands at the largest or at the smallest choice."""
    at_end, share = random.random(len(net.space)), random.random()
    small = random.random(len(net.space)) < random.random()
    ends = np.where(small, net.smallest().indices, net.largest().indices)
    drawn = [int(random.integers(len(v.choices))) for v in net.space]
    return SubNet(net.space, tuple(int(e) if p < share else d for e, d, p in zip(ends, drawn, at_end, strict=True)))
