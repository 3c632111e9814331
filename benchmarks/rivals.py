"""Trains what a user would pick instead of the SubNets of a finished run, with as many images each and the same rates.

    OMP_NUM_THREADS=1 python benchmarks/rivals.py PROJECT MODEL DEVICE --csv rivals.csv

PROJECT holds a finished run of weights that arrived. For each budget, beside its exported SubNet:

1. ``smaller pictures``: the network itself at the highest resolution that meets the budget; as it is, and tuned.
2. ``depth alone``: the SubNet that removes blocks and nothing else, closest below the budget, tuned.
3. ``ratios alone``: one share of the hidden channels of all blocks, in closed form, closest below the budget, tuned.
4. ``Torch-Pruning``: the network sliced by L1 norms to the MACs of the exported SubNet (``controls/slicing.py``); as it
   is, and tuned. Its channels have no counterpart in the given network, so that it learns from answers alone.
5. ``FastNAS``: of NVIDIA's ModelOpt, to the same MACs, chosen by right answers on the validation set; as it is, and
   tuned. Left out where its packages are not installed (``controls/fastnas.py``).
6. ``scaled``: the network with all widths scaled to these MACs, from scratch.

Costs are those that the run's table of latencies predicts, or MACs; those of 4 to 6 are shares of the MACs. Tuning is
the run's ``polish``: the given network teaches, statistics stay, and the range test chooses the rate of each rival.
Accuracies are percent of the validation and of the test set; differences from the exported SubNet have the standard
error of the pairs, picture by picture.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx2torch
import pandas as pd
import torch
import torch.fx
from controls import fastnas
from controls.slicing import flops, narrowest, sliced
from onnx2torch.node_converters.reshape import OnnxReshape
from plain_table import plain_table
from rich.console import Console
from torch import nn

import autotailor
from autotailor import artifacts, config, data, finetuning, profiling, search
from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.data import DataSplits
from autotailor.data.augmentation.mixing import mixing
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import Batch
from autotailor.finetuning import polishing
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.polishing.rate import choose_rate
from autotailor.finetuning.polishing.teacher import choose_teacher
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.finetuning.training.loop import train
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.execution.uniform import initialise, scale_uniformly
from autotailor.ir.graph import Graph
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet
from autotailor.statistics import clustered_mean
from autotailor.task.registry import of

DEPTH, RESOLUTION, RATIO = "depth", "resolution", "expand_ratio"
RIVALS = ("smaller pictures", "depth alone", "ratios alone", "Torch-Pruning", "FastNAS", "scaled")
COLUMNS = ("budget", "what", "cost", "images", "validation", "test", "test_behind", "error")


@dataclass(frozen=True)
class Finished:
    """A finished run.

    Attributes:
        folder: of the project.
        model, device: as the run was started with.
        overrides: ``KEY=VALUE``, the same.
    """

    folder: Path
    model: str
    device: str
    overrides: tuple[str, ...]

    @property
    def results(self) -> Path:
        """What the run has made for its device."""
        return self.folder / "results" / self.model / self.device

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The composed configuration."""
        return config.compose(self.folder / "conf", self.model, self.device, list(self.overrides))

    @cached_property
    def splits(self) -> DataSplits:
        """The pictures."""
        return data.load(self.settings["data"])

    @cached_property
    def net(self) -> autotailor.SuperNet:
        """The SuperNet that SubNets inherit from."""
        return autotailor.load(self.results.parent / "supernet.pt")

    @cached_property
    def original(self) -> autotailor.SuperNet:
        """The SuperNet as compiled, whose largest SubNet teaches."""
        return autotailor.load(self.results.parent / "compiled.pt")

    @cached_property
    def cost(self) -> Metric:
        """What budgets are of: latency by the run's table, or MACs."""
        if not (self.results / "lut.csv").exists():
            return self.net.macs()
        device = profiling.DeviceConfig.from_section(self.settings["device"])
        table = profiling.LUT.read(self.results / "lut.csv").latencies()
        return self.net.latency(table, profiling.fusion_rules(device))

    @cached_property
    def batches(self) -> list[Batch]:
        """Training pictures from which pruned networks get statistics of BatchNorm."""
        return list(islice(self.splits.train.batches(0, 32), 8))

    def cost_of(self, subnet: SubNet) -> float:
        """Of one SubNet."""
        return float(self.cost.predict(subnet.to_array())[0])

    def inherited(self, subnet: SubNet) -> Graph:
        """A SubNet with the weights and statistics that it inherits."""
        calibration = finetuning.FinetuneConfig.from_section(self.settings["finetune"]).calibration
        module = self.net.module().eval()
        return self.net.slice(subnet, Calibrator(self.splits, calibration).statistics(module, subnet))

    def tuned(self, rivals: Mapping[str, SubNet], images: int) -> dict[str, tuple[Graph, int]]:
        """SubNets polished side by side as the run does, with this many images each, and the images that each has seen.

        Where polishing does not bring a SubNet nearer to the teacher, it has seen 0 and keeps what it inherits.
        """
        settings = polishing.PolishConfig.from_section(self.settings["polish"])
        settings = replace(settings, rounds=(polishing.Round(1, images=images),))
        contests = {name: [subnet] for name, subnet in rivals.items()}
        inherited = {subnet.id: 0.0 for subnet in rivals.values()}
        with tempfile.TemporaryDirectory() as folder:
            found, _ = polishing.polish(
                self.net, self.original, self.splits, contests, inherited, settings, Path(folder)
            )
        return {name: (self._graph(each), each.images) for name, each in found.items()}

    def _graph(self, each: polishing.Polished) -> Graph:
        if each.weights is None:
            return self.inherited(each.subnet)
        return self.net.slice(each.subnet).with_weights(each.weights)


def tuned_alone(run: Finished, graph: Graph, images: int, frozen: bool = True) -> tuple[Graph, int]:
    """A network of another make trained as the run's SubNets are, and the images that it has seen.

    Args:
        run: of the teacher, the pictures and the parameters.
        graph: the network as training begins.
        images: to be seen, at least.
        frozen: whether it keeps its statistics of BatchNorm.
    """
    settings = polishing.PolishConfig.from_section(run.settings["polish"])
    settings = replace(settings, features=0.0, streams=0.0, frozen=frozen)
    stream = augmented(run.splits, settings.augmentation, settings.seed)
    parts, each = polishing.Round(1, images=images).parts(len(stream), settings.checks, settings.batch_size)
    settings, part = settings.of_round(0, parts), LaterEpochs(stream, FIRST_EPOCH, each)
    teacher = choose_teacher(run.net, run.original, run.splits, settings, torch.device("cpu"))
    mix = mixing(run.splits, settings.augmentation, settings.seed)
    modules = [GraphModule(graph, logits=True)]

    def lockstep(students: Sequence[nn.Module], sides: Sequence[int], config: polishing.PolishConfig) -> Lockstep:
        return Lockstep(students, sides, teacher, config, of(run.splits), run.original.head.independent)

    if settings.rates:
        settings = replace(settings, lr=choose_rate(modules, lockstep, [0], settings, part, mix))
    step = lockstep(modules, [0], settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.ckpt"
        history = train(nn.ModuleList(modules), part, settings, step, path, "rival", "rival", mix=mix)
    step.close()
    size = min(settings.batch_size, len(part))
    return graph.with_weights(modules[0].arrays()), len(history) * part.num_batches(settings.batch_size) * size


def torch_network(run: Finished) -> nn.Module:
    """The network in modules of PyTorch, as pruners need it: what ``onnx2torch`` makes of the compiled network.

    Where it flattens maps into a stated number of channels, it flattens whatever is left of them.
    """
    network = onnx2torch.convert(to_onnx(run.original.original))
    assert isinstance(network, torch.fx.GraphModule)
    for node in network.graph.nodes:
        if node.op == "call_module" and isinstance(network.get_submodule(node.target), OnnxReshape):
            network.set_submodule(node.target, nn.Flatten())
            node.args = node.args[:1]
    network.recompile()
    return network.eval()


@torch.no_grad()
def compiled(run: Finished, network: nn.Module) -> autotailor.SuperNet:
    """A pruned network with statistics of BatchNorm of its own, and without variables."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean over all batches
    network.train()
    for images, _ in run.batches:
        network(images)
    return autotailor.compile(network.eval(), {}, resolution=int(run.settings["model"]["resolution"]))


def torch_pruning(run: Finished, macs: float) -> Graph:
    """The network with the channels of largest L1 norm, the same share everywhere, at a share of its MACs or above."""
    side = int(run.settings["model"]["resolution"])
    network = torch_network(run)
    classes = int(run.settings["model"]["num_classes"])
    whole = flops(network, side)
    width = narrowest(lambda w: flops(sliced(network, w, side, classes, 8), side) / whole, macs)
    return compiled(run, sliced(network, width, side, classes, 8)).graph


def fast_nas(run: Finished, macs: float, scores: Path) -> Graph:
    """The network as FastNAS prunes it to a share of its MACs or below; ``scores`` are a file that budgets share."""
    side = int(run.settings["model"]["resolution"])
    network = torch_network(run)

    def score(module: nn.Module) -> float:
        return percent(correctness(module.eval(), run.splits.validation, 0))

    return compiled(run, fastnas.pruned(network, macs, side, run.batches, score, scores)).graph


def scaled(run: Finished, macs: float) -> Graph:
    """The network with all widths scaled to no fewer than a share of its MACs, and random weights."""
    side = int(run.settings["model"]["resolution"])
    whole = flops(GraphModule(run.original.original), side)

    def share(width: float) -> float:
        return flops(GraphModule(scale_uniformly(run.original.original, width, divisor=8)), side) / whole

    return initialise(scale_uniformly(run.original.original, narrowest(share, macs), divisor=8), 0)


def closest_below(run: Finished, found: Sequence[SubNet], limit: float) -> SubNet:
    """The SubNet that costs most within a limit; else the one that costs least."""
    return max((s for s in found if run.cost_of(s) <= limit), key=run.cost_of, default=min(found, key=run.cost_of))


def smaller_pictures(run: Finished, limit: float) -> SubNet:
    """The network itself at the highest resolution within a limit."""
    (variable,) = (each for each in run.net.space if each.kind == RESOLUTION)
    found = [SubNet.from_assignment(run.net.space, {variable.name: choice}) for choice in variable.choices]
    return closest_below(run, found, limit)


def depth_alone(run: Finished, limit: float) -> SubNet:
    """The SubNet that removes blocks alone, closest below a limit; else the one that costs least."""
    depths = [each for each in run.net.space if each.kind == DEPTH]
    names = [each.name for each in depths]
    found = [
        SubNet.from_assignment(run.net.space, dict(zip(names, choices, strict=True)))
        for choices in product(*(each.choices for each in depths))
    ]
    return closest_below(run, found, limit)


def ratios_alone(run: Finished, limit: float) -> SubNet:
    """The SubNet with one share of hidden channels in all blocks, the widest within a limit; else the narrowest."""
    ratios = [each for each in run.net.space if each.kind == RATIO]
    steps = max(len(each.choices) for each in ratios)
    found = []
    for step in range(steps):
        cut = {each.name: sorted(each.choices, reverse=True)[min(step, len(each.choices) - 1)] for each in ratios}
        found.append(SubNet.from_assignment(run.net.space, cut))
    return closest_below(run, found, limit)


def right(run: Finished, graph: Graph, subnet: SubNet) -> tuple[float, npt.NDArray[np.bool_]]:
    """Percent of the validation pictures that are right, and which test pictures are."""
    module = GraphModule(graph, logits=True).eval()
    resolution = resolution_of(subnet)
    return percent(correctness(module, run.splits.validation, resolution)), correctness(
        module, run.splits.test, resolution
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("model")
    parser.add_argument("device")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE, as the run had them")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--budgets", nargs="*", default=[], help="names; all where none is given")
    parser.add_argument("--rivals", nargs="*", choices=RIVALS, default=RIVALS, help="all where none is given")
    asked = parser.parse_args()
    folder = asked.project.resolve()
    os.chdir(folder)  # paths of the configuration are relative to the project
    run = Finished(folder, asked.model, asked.device, tuple(asked.overrides))
    chosen = polishing.read_exported(run.results / "polish.json", run.results / "polished.pt", run.net)
    said = artifacts.read_json(run.results / "polish.json")
    limits = search.read_candidates(run.results / "candidates.csv", run.net.space).limits
    whole, groups = run.cost_of(run.net.largest()), run.splits.test.groups
    rows: list[tuple[Any, ...]] = []

    macs = run.net.macs()
    all_macs = float(macs.predict(run.net.largest().to_array())[0])

    def add(
        budget: str, what: str, subnet: SubNet, graph: Graph, images: int, ours: Any = None, share: float | None = None
    ) -> Any:
        of_validation, of_test = right(run, graph, subnet)
        behind, error = (0.0, 0.0) if ours is None else clustered_mean(ours.astype(float) - of_test, groups)
        cost = run.cost_of(subnet) / whole if share is None else share
        numbers = (cost, images, of_validation, percent(of_test), 100 * behind, 100 * error)
        rows.append((budget, what, *(round(number, 3) for number in numbers)))
        print(*rows[-1], flush=True)
        return of_test

    largest = run.net.largest()
    add("", "the network", largest, run.net.slice(largest), 0)
    for name, limit in limits.items():
        if asked.budgets and name not in asked.budgets:
            continue
        each = chosen[name]
        images = int(said["images"]) if each.graph is not None else 0
        graph = each.graph if each.graph is not None else run.inherited(each.subnet)
        ours = add(name, "exported", each.subnet, graph, images)
        bound = max(limit, run.cost_of(each.subnet))
        small, shallow, narrow = (choose(run, bound) for choose in (smaller_pictures, depth_alone, ratios_alone))
        add(name, "smaller pictures, as it is", small, run.inherited(small), 0, ours)
        images = images or 12000
        named = {"smaller pictures": small, "depth alone": shallow, "ratios alone": narrow}
        cut = {what: rival for what, rival in named.items() if rival != largest and what in asked.rivals}
        for what, found in run.tuned(cut, images).items():
            add(name, f"{what}, tuned", cut[what], *found, ours)
        share = float(macs.predict(each.subnet.to_array())[0]) / all_macs
        pruners = {"Torch-Pruning": lambda s: torch_pruning(run, s)}
        if fastnas.available():
            pruners["FastNAS"] = lambda s: fast_nas(run, s, run.results / "fastnas.pth")
        for what in (each for each in pruners if each in asked.rivals):
            graph = pruners[what](share)
            add(name, f"{what}, as it is", largest, graph, 0, ours, share)
            add(name, f"{what}, tuned", largest, *tuned_alone(run, graph, images), ours, share)
        if "scaled" in asked.rivals:
            graph, seen = tuned_alone(run, scaled(run, share), images, frozen=False)
            add(name, "scaled, from scratch", largest, graph, seen, ours, share)
    table = pd.DataFrame(rows, columns=COLUMNS)
    Console(width=160).print(plain_table(table, "Beside the exported SubNets"))
    if asked.csv:
        table.to_csv(asked.csv, index=False)


if __name__ == "__main__":
    main()
