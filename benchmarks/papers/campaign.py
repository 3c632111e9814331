"""Runs each method in a folder of its own, with the pictures, the table of latencies and the polishing of all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from controls.slicing import sliced
from pipeline import snakemake
from rivals import Finished, compiled, right, torch_network, tuned_alone

import autotailor
from autotailor import artifacts, profiling, search
from autotailor.exits.answers import Answers, Policy
from autotailor.finetuning import polishing
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet
from autotailor.profiling import LUT, DeviceConfig, Store, fusion_rules
from autotailor.search.front import Front
from papers.answers import UNKNOWN, Answer, Bools

ALTERNATIVES = "autotailor, alternatives"
"""Our method with the blocks of the other papers in the same space, and the same search."""
ALL_KINDS = "low_rank: [0.5], depthwise: true, ghost: [2], fire: true, shrunk: [0.5, 0.25], merged: [1, 2]"
MORE = {ALTERNATIVES: (f"model.space.alternatives={{{ALL_KINDS}}}",)}
"""Overrides of what is no file of ``conf/method`` alone; the file's name stands before the comma."""
PIPELINE = ("autotailor", ALTERNATIVES, "adaptivenet", "legodnn", "adascale", "uniform")
"""What is a file of ``conf/method``, or one with more overrides."""
NESTDNN, WITH_EXITS = "nestdnn", "adascale, exits"
METHODS = (*PIPELINE, NESTDNN)
RATIOS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of the channels that Torch-Pruning leaves."""
SHARED = ("conf", "models", "photos", "data")
"""What the project's folder has and each run reads, as far as it is there."""


@dataclass(frozen=True)
class Campaign:
    """All methods on one project.

    Attributes:
        project: folder with ``conf`` and what it names.
        model, device: files of ``conf/model`` and ``conf/device``.
        overrides: ``KEY=VALUE`` for every method.
        directory: where the runs and what they answer are kept.
        budgets: percent of the given network's latency, or of what else the device limits.
        polished: those of them whose SubNets are polished.
        images: training pictures that each SubNet sees when it is polished.
    """

    project: Path
    model: str
    device: str
    overrides: tuple[str, ...]
    directory: Path
    budgets: tuple[int, ...]
    polished: tuple[int, ...]
    images: int

    @property
    def answers(self) -> Path:
        """The folder of what is known."""
        return self.directory / "answers"

    @property
    def table(self) -> Path:
        """The table of latencies that all methods share."""
        return self.directory / "lut.csv"

    @property
    def store(self) -> Path:
        """The measurements of operators."""
        return self.directory / "luts"

    def folder(self, method: str, seed: int) -> Path:
        """Of one run, which is a project of its own with the files of this one."""
        folder = self.directory / f"{method.replace(', ', '_')}_{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        for name in SHARED:
            if (self.project / name).exists() and not (folder / name).exists():
                (folder / name).symlink_to(self.project / name)
        return folder

    def run(self, method: str, seed: int, more: Sequence[str] = ()) -> Finished:
        """The run of a method, finished or not."""
        overrides = (f"method={file_of(method)}", f"seed={seed}", *self.overrides, *MORE.get(method, ()), *more)
        return Finished(self.folder(method, seed), self.model, self.device, overrides)

    def make(self, run: Finished, *files: Path) -> None:
        """Makes files of a run."""
        targets = [str(file.relative_to(run.folder)) for file in files]
        snakemake(run.folder, self.model, self.device, run.overrides, targets)

    def measure(self, methods: Sequence[str], seed: int) -> None:
        """Measures all operators of all methods; those that the store knows are not measured again."""
        store = [f"profile.store={self.store}"]
        for method in (each for each in methods if each in PIPELINE):
            run = self.run(method, seed, store)
            self.make(run, run.results / "lut.csv")
        run = self.run(PIPELINE[0], seed, store)
        limit = {"max_minutes": run.settings["profile"]["max_minutes"]}
        device = DeviceConfig.from_section(run.settings["device"] | limit)
        with chdir(run.folder):
            for net in self.pruned(run).values() if NESTDNN in methods else ():
                profiling.profile(net.operators(fusion=fusion_rules(device)), device, self.store, net=net)
        known = Store(self.store)
        table = known.lut(LUT.read(run.results / "lut.csv").fingerprint)
        with artifacts.atomic(self.table) as path:
            table.write(path)

    def pruned(self, run: Finished) -> dict[float, autotailor.SuperNet]:
        """The network as Torch-Pruning leaves it at each ratio (the paper's NestDNN*)."""
        side, classes = int(run.settings["model"]["resolution"]), int(run.settings["model"]["num_classes"])
        return {ratio: compiled(run, sliced(torch_network(run), ratio, side, classes, 8)) for ratio in RATIOS}

    @cached_property
    def latencies(self) -> dict[str, float]:
        """Milliseconds of each operator."""
        return LUT.read(self.table).latencies()

    @cached_property
    def limited(self) -> search.Cost:
        """What budgets limit: latency, or what the graph says (``device=macs``)."""
        return search.cost_of_device(self.run(PIPELINE[0], 0).settings["device"])

    @property
    def by_table(self) -> list[str]:
        """Overrides by which a run takes the table that all methods share, where latency is limited."""
        return [f"profile.lut={self.table}"] if self.limited.is_measured else []

    def metric(self, run: Finished, net: autotailor.SuperNet) -> Metric:
        """What budgets limit, of the SubNets of a network."""
        if self.limited.count is not None:
            return self.limited.count(net)
        return net.latency(self.latencies, fusion_rules(DeviceConfig.from_section(run.settings["device"])))

    def cost(self, run: Finished, net: autotailor.SuperNet, subnet: SubNet) -> float:
        """What budgets limit, of one SubNet: latency by the table in milliseconds, or a count."""
        return float(self.metric(run, net).predict(subnet.to_array())[0])

    def share(self, run: Finished, net: autotailor.SuperNet, subnet: SubNet | None = None) -> float:
        """The cost of a SubNet, the largest by default, as a share of that of the given network."""
        return self.cost(run, net, subnet or net.largest()) / self.cost(run, run.original, run.original.largest())

    def reached(self, run: Finished) -> list[int]:
        """The budgets that the fastest SubNet of a compiled space keeps."""
        metric, largest = self.metric(run, run.original), run.original.largest()
        share = 100 * least(metric, largest) / self.cost(run, run.original, largest)
        return [budget for budget in self.budgets if budget >= share]

    def answer(self, method: str, seed: int) -> None:
        """Trains, searches and polishes for all budgets of a method; what is known is not computed again."""
        if method == NESTDNN:
            self._answer_pruned(seed)
            return
        more = self.by_table
        run = self.run(method, seed, more)
        self.make(run, run.results / "lut.csv" if more else run.results.parent / "compiled.pt")
        budgets = self.reached(run)
        polished = [budget for budget in budgets if budget in self.polished]
        limits = json.dumps([f"{budget}%" for budget in polished])
        rounds = f"polish.rounds=[{{candidates:1,epochs:1,images:{self.images}}}]"
        more += [f"export.budgets={limits}", "search.confidence=0.5", "search.session_noise=0", rounds]
        run = self.run(method, seed, more)
        if has_exits := bool(run.settings["model"]["space"].get("exits")):
            more.append(f"model.space.exits.images={self.images}")
            run = self.run(method, seed, more)
        self.make(run, run.results / "polish.json")
        with chdir(run.folder):
            for answer in self._answers(run, method, seed, budgets, polished):
                answer.write(self.answers)
        if has_exits:
            self.make(run, run.results / "exits.json")
            for answer in self._with_exits(run, seed, polished):
                answer.write(self.answers)

    def _answers(
        self, run: Finished, method: str, seed: int, budgets: Sequence[int], polished: Sequence[int]
    ) -> Iterator[Answer]:
        """The SubNets that were polished, and those of the predicted front at the other budgets."""
        chosen = polishing.read_exported(run.results / "polish.json", run.results / "polished.pt", run.net)
        front = Front.read(run.results / "pareto.csv", run.net.space, self.limited)
        whole = self.cost(run, run.net, run.net.largest())
        images = int(artifacts.read_json(run.results / "polish.json")["images"])
        for budget in budgets:
            if Answer.path(self.answers, method, seed, budget).exists():
                continue
            each = chosen[f"budget_{polished.index(budget) + 1:02d}"] if budget in polished else None
            subnet = each.subnet if each else front.at(whole * budget / 100)
            before, before_right = right(run, run.inherited(subnet), subnet)
            after = right(run, each.graph, subnet) if each and each.graph else (before, before_right)
            yield Answer(
                method, seed, budget, 100 * self.share(run, run.net, subnet), json.dumps(subnet.assignment),
                images if each and each.graph else 0, before, after[0] if each else math.nan, before_right,
                after[1] if each else UNKNOWN,
            )  # fmt: skip

    def _with_exits(self, run: Finished, seed: int, budgets: Sequence[int]) -> Iterator[Answer]:
        """The choice of SubNet, exits and thresholds at each budget of the expected latency."""
        said = artifacts.read_json(run.results / "exits.json")
        largest = max(each["whole"] for each in said["networks"].values())
        for row in said["budgets"].values():
            budget, choice = round(100 * row["share"]), row["with"]
            if budget not in budgets or choice is None:
                continue
            alone = Answer.read(Answer.path(self.answers, "adascale", seed, budget))
            with np.load(run.results / "exits" / choice["name"] / "answers.npz") as arrays:
                seen = Answers(arrays["test_confidence"], arrays["test_right"])
            taken = right_where_left(choice["thresholds"], said["networks"][choice["name"]]["exits"], seen)
            yield Answer(
                WITH_EXITS, seed, budget, 100 * choice["expected"] / largest, json.dumps(choice["thresholds"]),
                alone.images + int(run.settings["model"]["space"]["exits"]["images"]), alone.inherited,
                choice["accuracy_folds"], alone.inherited_right, taken,
            )  # fmt: skip

    def _answer_pruned(self, seed: int) -> None:
        """At each budget the widest network within it; tuned where SubNets are polished."""
        run = self.run(PIPELINE[0], seed, self.by_table)
        self.make(run, run.results.parent / "supernet.pt")
        with chdir(run.folder):
            nets = self.pruned(run)
            latency = {ratio: 100 * self.share(run, net) for ratio, net in nets.items()}
            for budget in self.budgets:
                ratio = widest(latency, budget)
                if ratio is None or Answer.path(self.answers, NESTDNN, seed, budget).exists():
                    continue
                graph, images, after = nets[ratio].graph, 0, (math.nan, UNKNOWN)
                before, before_right = right(run, graph, run.net.largest())
                if budget in self.polished:
                    tuned, images = tuned_alone(run, graph, self.images)
                    after = right(run, tuned, run.net.largest())
                said = f"ratio {ratio:g}"
                Answer(
                    NESTDNN, seed, budget, latency[ratio], said, images, before, after[0], before_right, after[1]
                ).write(self.answers)


def file_of(method: str) -> str:
    """The name of the file of ``conf/method`` that a method is configured by."""
    return method.partition(",")[0]


def right_where_left(thresholds: Mapping[str, float | None], exits: Iterable[str], seen: Answers) -> Bools:
    """Whether each picture is right where it leaves, ``[n]``; at exits without a threshold none does."""
    policy = Policy(tuple(map(thresholds.get, exits)), 0.0, 0.0, 0.0, 0.0)
    return policy.right(seen) >= 0.5


def least(metric: Metric, subnet: SubNet) -> float:
    """The least that single modifications, the best first, make of a SubNet's cost."""
    choices, values = [len(variable.choices) for variable in subnet.space], [subnet.to_array()]
    cost = float(metric.predict(values[0])[0])
    while True:
        changed = np.repeat(values, sum(choices), axis=0)
        changed[np.arange(sum(choices)), np.repeat(np.arange(len(choices)), choices)] = np.concatenate(
            [np.arange(count) for count in choices]
        )
        costs = metric.predict(changed)
        if costs.min() >= cost:
            return cost
        cost, values = float(costs.min()), [changed[costs.argmin()]]


def widest(latency: Mapping[float, float], budget: float) -> float | None:
    """The ratio that leaves most within a budget, of ratios with their latencies; None where all are slower."""
    return max((ratio for ratio, each in latency.items() if each <= budget), default=None)
