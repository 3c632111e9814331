"""The methods that ``fronts.py`` compares: how each makes and trains its network.

The networks of (2) to (5) have seen the same number of images each: a polished SubNet in pretraining, as part of the
SuperNet, and in polishing, and the others are trained with as many; those trained ``briefly`` with as many as polishing
alone shows. The largest SubNet teaches all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from torch import nn

import autotailor
from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import correctness, evaluate, percent
from autotailor.data.splits import EvaluationSet
from autotailor.finetuning import ScaledConfig, train_scaled
from autotailor.finetuning.config import LARGEST
from autotailor.finetuning.polishing import Polished, polish
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.uniform import initialise, scale_uniformly
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from controls.budgets import Contest
from controls.outcome import BoolArray, Outcome
from controls.run import Run
from controls.slicing import flops, narrowest, sliced
from controls.speed import Latencies, Match, latencies
from controls.start import Start

SHARED = (
    "batch_size", "optimizer", "warmup", "weight_decay", "label_smoothing", "gradient_norm", "threads", "precision",
    "distillation", "augmentation", "checkpoint_seconds",
)  # fmt: skip
"""Parameters of the SuperNet's training that the other networks are trained with, too."""


@dataclass(frozen=True)
class Control:
    """A network that is trained alone.

    Attributes:
        factory: makes the network with its first weights, images to logits.
        what: the network, for the reader.
        images: that it is trained with, at least.
        lr: the first learning rate that is tried.
        side: of its images, pixels; 0 leaves the size of the data.
        later: whether training reads epochs of the data that pretraining has not read.
        graph: of a network whose operators a LUT may know.
        match: latencies of a network that was chosen by them.
    """

    factory: Callable[[], nn.Module]
    what: str
    images: int
    lr: float
    side: int = 0
    later: bool = False
    graph: Graph | None = None
    match: Match | None = None


class Methods:
    """Trains the networks of one model and seed.

    Args:
        run: the model and seed.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    # SubNets with the SuperNet's weights, and polished ones.

    def inherited(self, contest: Contest) -> Outcome:
        """(1) The most accurate SubNet of a budget, with the SuperNet's weights."""
        return self._sharing(contest.best, contest.accuracies[contest.best.id])

    def polished(self, contest: Contest, start: Start, lr: float, workdir: Path) -> Outcome:
        """(2) The winner of the race for a budget, trained with weights of its own."""
        run, name = self._run, "budget"
        config = replace(run.polish, lr=lr, teacher=LARGEST)
        known = [subnet for subnet in contest.subnets if subnet.id in start.accuracies]
        chosen, races = polish(start.net, run.compiled, run.data, {name: known}, start.accuracies, config, workdir)
        outcome = self.of(chosen[name])
        images = start.images + outcome.images if outcome.images else 0
        return replace(outcome, images=images, passes=self._epoch * int(races["epochs"].sum()))

    def of(self, found: Polished) -> Outcome:
        """A SubNet with the weights that it is exported with: its own, or those of the SuperNet."""
        run, subnet = self._run, found.subnet
        if found.weights is None or found.polished is None:
            return self._sharing(subnet, found.inherited)
        network = GraphModule(run.net.slice(subnet).with_weights(found.weights), logits=True)
        right = self._right(network, run.data.test, resolution_of(subnet))
        return replace(self._of_subnet(subnet, found.polished, right), images=found.images)

    def _sharing(self, subnet: SubNet, validation: float) -> Outcome:
        """A SubNet with the SuperNet's weights."""
        run, module = self._run, self._run.net.module().eval()
        with deterministic(run.finetune.threads):
            statistics = Calibrator(run.data, run.finetune.calibration).statistics(module, subnet)
            right = evaluate(module, subnet, run.data.test, statistics).values.astype(np.bool_)
        return self._of_subnet(subnet, validation, right)

    def _of_subnet(self, subnet: SubNet, validation: float, right: BoolArray) -> Outcome:
        run = self._run
        latency, known = self._latency(run.net, subnet)
        return Outcome(validation, right, json.dumps(subnet.assignment), self._subnet_share(subnet), latency, known)

    # Networks that are trained alone.

    def alone(self, polished: Outcome) -> Control:
        """(3) The architecture of the polished SubNet, from scratch."""
        run = self._run
        subnet = SubNet.from_assignment(run.net.space, json.loads(polished.what))
        graph = initialise(run.untrained.slice(subnet), run.seed)
        factory = partial(GraphModule, graph, logits=True)
        return Control(factory, polished.what, self._seen, run.finetune.lr, resolution_of(subnet))

    def scaled(self, polished: Outcome) -> Control:
        """(4) The network scaled uniformly to the MACs of the polished SubNet, from scratch."""
        make, side = self._scaler(), self._run.data.resolution
        width = narrowest(lambda width: self._share(GraphModule(make(width)), side), polished.macs)
        graph = make(width)
        return replace(self._scaled(graph, width), graph=graph)

    def scaled_as_fast(self, polished: Outcome, folder: Path) -> Control:
        """(4) The network scaled uniformly to the measured latency of the polished SubNet, from scratch."""
        return self._scaled_by_latency(polished, folder, Latencies.as_fast)

    def scaled_in_budget(self, polished: Outcome, folder: Path, limit: float) -> Control:
        """(4) The network scaled uniformly, the widest whose measured latency is within the budget, from scratch."""
        return self._scaled_by_latency(polished, folder, lambda found: found.widest(limit))

    def scaled_briefly(self, polished: Outcome, folder: Path) -> Control:
        """(4) The network of ``scaled_as_fast``, with only as many images as polishing has shown to the SubNet."""
        return replace(self.scaled_as_fast(polished, folder), images=self._own)

    def _scaler(self) -> Callable[[float], Graph]:
        """Maps a width to the network with all widths times this one."""
        return partial(scale_uniformly, self._run.untrained.graph, divisor=self._divisor)

    def _scaled_by_latency(self, polished: Outcome, folder: Path, choose: Callable[[Latencies], Match]) -> Control:
        make = self._scaler()
        found = choose(self._latencies(make, polished, folder))
        return replace(self._scaled(make(found.width), found.width), match=found)

    def _scaled(self, graph: Graph, width: float) -> Control:
        factory = partial(GraphModule, initialise(graph, self._run.seed), logits=True)
        return Control(factory, f"width {width:g}", self._seen, self._run.finetune.lr)

    def sliced(self, polished: Outcome) -> Control:
        """(5) The original network sliced by importance to the MACs of the polished SubNet, and tuned."""
        make, side = self._slicer(), self._run.data.resolution
        return self._sliced(make, narrowest(lambda width: self._share(make(width), side), polished.macs))

    def sliced_as_fast(self, polished: Outcome, folder: Path) -> Control:
        """(5) The original network sliced by importance to the measured latency of the polished SubNet, and tuned."""
        make, side = self._slicer(), self._run.data.resolution

        def graph(width: float) -> Graph:
            return autotailor.compile(make(width), {}, resolution=side).graph

        found = self._latencies(graph, polished, folder).as_fast()
        return replace(self._sliced(make, found.width), match=found)

    def sliced_briefly(self, polished: Outcome, folder: Path) -> Control:
        """(5) The network of ``sliced_as_fast``, with only as many images as polishing has shown to the SubNet."""
        return replace(self.sliced_as_fast(polished, folder), images=self._own)

    def _slicer(self) -> Callable[[float], nn.Module]:
        """Maps a width to the original network with that share of its channels."""
        run, original = self._run, self._run.original()
        return lambda width: sliced(original, width, run.data.resolution, run.data.num_classes, self._divisor)

    def _sliced(self, make: Callable[[float], nn.Module], width: float) -> Control:
        images = self._seen - self._run.pretrain_images
        return Control(partial(make, width), f"width {width:g}", images, self._run.polish.lr, later=True)

    def _latencies(self, make: Callable[[float], Graph], polished: Outcome, folder: Path) -> Latencies:
        run = self._run
        subnet = SubNet.from_assignment(run.net.space, json.loads(polished.what))
        return latencies(make, run.net.slice(subnet), run.compiled.graph, run.device, folder)

    def trained_on(self) -> Control:
        """(6) The original network, trained on for as many images as the SuperNet saw."""
        run = self._run
        return Control(run.original, "original", run.finetune_images, run.polish.lr, later=True)

    def original(self) -> Outcome:
        """(6) The original network as it came."""
        network, data = self._run.original(), self._run.data
        validation = percent(self._right(network, data.validation, 0))
        return Outcome(validation, self._right(network, data.test, 0), "original", 1.0, 1.0)

    def train(self, control: Control, lr: float, workdir: Path) -> Outcome:
        """Trains a network alone with one learning rate, the largest SubNet teaching."""
        run, data = self._run, self._run.data
        if control.later:
            data = replace(data, train=LaterEpochs(data.train, FIRST_EPOCH))
        values = {key: getattr(run.finetune, key) for key in SHARED}
        config = ScaledConfig(images=control.images, seed=run.seed, lrs=(lr,), resolution=control.side, **values)
        result = train_scaled(control.factory, run.teacher, data, config, workdir, run.net.head.independent)
        network = control.factory()
        network.load_state_dict(result.state_dict)
        right = self._right(network, data.test, control.side)
        images = int(result.metrics["images"])
        latency, known, polished = self._control_latency(control)
        share = self._share(network, control.side or data.resolution)
        validation = result.metrics["validation_accuracy"]
        return Outcome(validation, right, control.what, share, latency, known, images, images, polished=polished)

    # Costs.

    @property
    def _epoch(self) -> int:
        """Images of one epoch."""
        size, train = self._run.finetune.batch_size, self._run.data.train
        return train.num_batches(size) * min(size, len(train))

    @property
    def _seen(self) -> int:
        """Images that a polished SubNet saw in all."""
        return self._run.pretrain_images + self._run.finetune_images + self._own

    @property
    def _own(self) -> int:
        """Images that polishing shows to a SubNet, those of the joint training before it included."""
        return self._run.joint_images + self._epoch * sum(each.epochs for each in self._run.polish.rounds)

    @property
    def _divisor(self) -> int:
        return int((self._run.net.space_config or {}).get("divisor", 8))

    @cached_property
    def _whole(self) -> int:
        """Operations of the original network."""
        return flops(self._run.original(), self._run.data.resolution)

    def _share(self, network: nn.Module, side: int) -> float:
        """Operations of a network over those of the original."""
        return flops(network, side) / self._whole

    def _subnet_share(self, subnet: SubNet) -> float:
        return self._share(self._run.net.build(subnet), resolution_of(subnet) or self._run.data.resolution)

    def _latency(self, net: SuperNet, subnet: SubNet | None = None) -> tuple[float, str]:
        """Predicted latency over the original's (NaN where unknown), and how many operators the LUT knows."""
        run, known = self._run, self._run.latencies
        if known is None:
            return float("nan"), ""
        features = [place.feature(subnet or net.largest()) for place in net.places(run.fusion)]
        ids = [feature.id for feature in features if feature is not None]
        found = [known[id_] for id_ in ids if id_ in known]
        whole = float(run.cost.predict(run.net.largest().to_array())[0])
        return (sum(found) / whole if len(found) == len(ids) else float("nan")), f"{len(found)} of {len(ids)}"

    def _control_latency(self, control: Control) -> tuple[float, str, float]:
        """Latency over the original's, operators that the LUT knows, and the polished SubNet's latency over it."""
        if control.match is not None:
            return control.match.latency, "", control.match.polished
        unknown = (float("nan"), "") if control.graph is None else self._latency(SuperNet.of(control.graph))
        return *unknown, float("nan")

    def _right(self, network: nn.Module, images: EvaluationSet, side: int) -> BoolArray:
        with deterministic(self._run.finetune.threads):
            return correctness(network, images, side).astype(np.bool_)
