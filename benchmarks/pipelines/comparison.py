"""Takes a case through ``autotailor run`` to its exports, and compares them with networks of uniform width.

For each budget, beside the exported SubNet, networks with all widths of the given one times one factor. One is as fast
as the SubNet where all are timed in one interleaved session, or has as many MACs where MACs are the budget (the next
wider one, so that it is never cheaper); another, ``in the budget``, is the widest that keeps the budget, which is what
a user would take who has one width to choose:

- ``uniform, sliced`` has the given network's most important channels, and is tuned as the SubNet is polished: the given
  network teaches, the range test finds the rate, and it sees as many images.
- ``uniform, from scratch`` is trained by the owner's loop first, with as many images as the given network has seen, and
  then tuned in the same way.

Of a tuned network and what it was before, the better one on the validation set counts.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from controls import speed
from rivals import Finished, tuned_alone
from torch import nn

import autotailor
from autotailor import artifacts, finetuning, profiling, search
from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.evaluation import correctness
from autotailor.export import accuracy_of_onnx
from autotailor.finetuning import polishing
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.importance import channel_orders, permuted
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.uniform import channel_atoms, initialise, scale_uniformly
from autotailor.ir.graph import Graph
from autotailor.ir.propagation import propagate
from autotailor.ir.space.metric import FloatArray
from autotailor.measurement.comparison import matched_widths
from autotailor.search.budgets import budget_shares
from autotailor.statistics import clustered_mean
from autotailor.task.registry import of
from pipelines import CASES, Case

ROOT = Path(__file__).parents[2]
BUDGETS = {"budget_01": "60%", "budget_02": "50%"}
WIDTHS = tuple(step / 16 for step in range(3, 16))
SUBNET, ORIGINAL, SLICED, SCRATCH = "SubNet", "original", "uniform, sliced", "uniform, from scratch"
KEPT = ", in the budget"
BRIEF = ("sensitivity.validate_subnets=3",)
"""What a run says of its own predictions of accuracy, and nothing here reads, is kept short."""
Row = dict[str, Any]


class AsGiven(nn.Module):
    """A compiled network that takes signals ``[n, channels, length]`` as the given one does."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.inner = GraphModule(graph, logits=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x if x.ndim == 4 else x[:, :, None])


@dataclass(frozen=True)
class Walk:
    """One case and seed in a folder of its own, where what is made is not made again.

    Attributes:
        name: of the case.
        folder: of data, checkpoint and project.
        seed: of all that is random.
        device: a file of ``conf/device``.
        recipe: a file of ``conf/recipe``.
    """

    name: str
    folder: Path
    seed: int
    device: str = "host"
    recipe: str = "quick"

    @property
    def case(self) -> Case:
        """What is given."""
        return CASES[self.name]

    @property
    def overrides(self) -> tuple[str, ...]:
        """Arguments of ``run``."""
        budgets = ",".join(f'"{share}"' for share in BUDGETS.values())
        return (
            f"recipe={self.recipe}",
            f"seed={self.seed}",
            f"export.budgets=[{budgets}]",
            *BRIEF,
            *self.case.overrides,
        )

    def given(self) -> int:
        """Writes the data and trains the network, as its owner did; returns how many images it has seen."""
        data, weights, said = (self.folder / name for name in ("data", "given.pt", "given.json"))
        if not said.exists():
            if not (data / self.case.given).exists():
                data.mkdir(parents=True, exist_ok=True)
                self.case.write(data, self.seed, 0)
            torch.manual_seed(self.seed)
            network = self.case.network()
            images = self.case.train(network, data, self.seed)
            torch.save(network.state_dict(), weights)
            if self.case.signal:
                example = (torch.zeros(1, *self.case.signal),)
                torch.onnx.export(network, example, str(weights.with_suffix(".onnx")), dynamo=False)
            artifacts.write_json(said, {"images": images})
        return int(artifacts.read_json(said)["images"])

    def run(self) -> Finished:
        """Runs the pipeline as a person does, down to the report; what is finished is not run again."""
        project, model = self.folder / "project", f"conf/model/{self.name}.yaml"
        if not project.exists():
            self._command("new", str(project), folder=self.folder)
        if not (project / model).exists():
            source = ["../given.onnx"] if self.case.signal else [self.case.factory, "--weights", "../given.pt"]
            order = [*source, "--data", f"../data/{self.case.given}", *self.case.inspect]
            said = self._command("inspect", *order, "--yaml", folder=project)
            (project / model).write_text(said, encoding="utf-8")
        self._command("run", f"model={self.name}", f"device={self.device}", *self.overrides, "-c", "1", folder=project)
        os.chdir(project)  # paths of the configuration are relative to the project
        return Finished(project, self.name, self.device, self.overrides)

    def _command(self, *order: str, folder: Path) -> str:
        """What a command of autotailor prints on standard output."""
        path = os.pathsep.join(str(ROOT / name) for name in ("src", "benchmarks", "tests"))
        binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PYTHONPATH": path, "PATH": binaries}
        done = subprocess.run(
            [sys.executable, "-m", "autotailor", *order],
            cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"autotailor {' '.join(order)} failed: {done.stdout[-3000:]}")
        return done.stdout


def sorted_channels(graph: Graph) -> Graph:
    """A network with all its coupled channels by importance, whether a space would cut them or not."""
    propagation = propagate(graph)
    elastic = ElasticGraph(graph, propagation)
    return graph.with_weights(permuted(elastic, channel_orders(elastic, list(channel_atoms(graph, propagation)))))


class Comparison:
    """A finished run, its exports, and networks of uniform width beside them.

    Args:
        walk: the case.
        run: its finished run.
        images: that the owner's training has seen.
    """

    def __init__(self, walk: Walk, run: Finished, images: int) -> None:
        self._walk, self._run, self._images = walk, run, images
        self._chosen = polishing.read_exported(run.results / "polish.json", run.results / "polished.pt", run.net)
        self._polished = int(artifacts.read_json(run.results / "polish.json")["images"])
        calibration = finetuning.FinetuneConfig.from_section(run.settings["finetune"]).calibration
        self._calibrator = Calibrator(run.splits, calibration)
        self._sorted = sorted_channels(self._calibrator.adopt(run.original).original)

    def rows(self, known: set[tuple[str, str]]) -> Iterator[Row]:
        """The rows that are not known yet, each as soon as it is known: the original's first.

        Args:
            known: budgets and networks.
        """
        original, costs = self._shares(self._run.results.parent / "model.onnx"), self._costs
        if ("", ORIGINAL) not in known:
            yield self._row("", ORIGINAL, original, 1.0, 1.0, self._images)
        widths = {float(name): cost for name, cost in costs.items() if name not in (ORIGINAL, *BUDGETS)}
        matched = matched_widths(pd.Series(costs), widths, tuple(BUDGETS))
        made = dict[tuple[str, float, int], tuple[FloatArray, int]]()
        limits = budget_shares(list(BUDGETS.values()), "")
        for name, budget in BUDGETS.items():
            own = self._shares(self._run.results / "exports" / name / "model.onnx")
            own_images = self._polished if self._chosen[name].graph is not None else 0
            whole = costs[ORIGINAL]
            kept = max((width for width, cost in widths.items() if cost <= limits[name] * whole), default=min(widths))
            if (budget, SUBNET) not in known:
                pairs = {"lost": (original, own)}
                yield self._row(budget, SUBNET, own, float("nan"), costs[name] / whole, own_images, pairs)
            for end, network in itertools.product(("", KEPT), (SLICED, SCRATCH)):
                label, width = network + end, kept if end else matched[name]
                if (budget, label) not in known:
                    asked = (network, width, own_images)
                    right, seen = made[asked] = made.get(asked) or self._uniform(*asked)
                    pairs = {"lost": (original, right), "gain": (own, right)}
                    yield self._row(budget, label, right, width, widths[width] / whole, seen, pairs)

    def _uniform(self, network: str, width: float, images: int) -> tuple[FloatArray, int]:
        """Shares of a network of uniform width on the test set, and the images that it has seen."""
        graph, seen = self._graph(width), 0
        if network == SCRATCH:
            module = AsGiven(initialise(graph, self._walk.seed))
            seen = self._walk.case.train(module, self._walk.folder / "data", self._walk.seed)
            graph = graph.with_weights(module.inner.arrays())
        else:
            net = autotailor.SuperNet.of(graph, {})
            statistics = self._calibrator.statistics(net.module().eval(), net.largest())
            graph = net.slice(net.largest(), statistics)
        tuned, more = tuned_alone(self._run, graph, images) if images else (graph, 0)
        modules = [GraphModule(each, logits=True).eval() for each in (graph, tuned)]
        _, better = max((correctness(each, self._run.splits.validation).mean(), i) for i, each in enumerate(modules))
        return correctness(modules[better], self._run.splits.test), seen + more

    def _graph(self, width: float) -> Graph:
        divisor = int((self._run.original.space_config or {}).get("divisor", 8))
        return scale_uniformly(self._sorted, width, divisor)

    @cached_property
    def _costs(self) -> dict[str, float]:
        """What budgets limit, of the original, the exported SubNets and all widths; latencies of one session, in ms."""
        cost = search.cost_of_device(self._run.settings["device"])
        path = self._walk.folder / f"{self._walk.device}.json"
        if not path.exists():
            graphs = {ORIGINAL: self._run.original.original} | {f"{width:g}": self._graph(width) for width in WIDTHS}
            graphs |= {name: self._run.net.slice(self._chosen[name].subnet) for name in BUDGETS}
            if cost.is_measured:
                device = profiling.DeviceConfig.from_section(self._run.settings["device"])
                artifacts.write_json(path, {"costs": speed.measured(graphs, device, self._walk.folder / "timed")})
            else:
                assert cost.count is not None
                nets = {name: autotailor.SuperNet.of(graph, {}) for name, graph in graphs.items()}
                whole = {name: cost.count(net).predict(net.largest().to_array()) for name, net in nets.items()}
                artifacts.write_json(path, {"costs": {name: float(each[0]) for name, each in whole.items()}})
        found: dict[str, float] = artifacts.read_json(path)["costs"]
        return found

    def _shares(self, path: Path) -> FloatArray:
        return np.asarray(accuracy_of_onnx(path, self._run.splits.test))

    def _row(
        self,
        budget: str,
        network: str,
        shares: FloatArray,
        width: float,
        cost: float,
        images: int,
        pairs: dict[str, tuple[FloatArray, FloatArray]] | None = None,
    ) -> Row:
        """A row; ``pairs`` are differences by name, of the first from the second, in points with their errors."""
        test = self._run.splits.test
        score, error = of(test).total(shares, test.groups)
        row: Row = {
            "case": self._walk.name,
            "seed": self._walk.seed,
            "device": self._walk.device,
            "recipe": self._walk.recipe,
            "budget": budget,
            "network": network,
        }
        row |= {"width": width, "cost": 100 * cost, "images": images, "score": score, "error": error}
        for name, (before, after) in (pairs or {}).items():
            mean, spread = clustered_mean(before - after, test.groups)
            row |= {name: 100 * mean, f"{name}_error": 100 * spread}
        return row


def compared(walk: Walk, known: set[tuple[str, str]]) -> Iterator[Row]:
    """The rows of a case and a seed that are not known yet."""
    images = walk.given()
    yield from Comparison(walk, walk.run(), images).rows(known)
