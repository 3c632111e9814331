"""Measures what a joint training before polishing is worth: SubNets with weights of their own, after different epochs.

    python benchmarks/joint_polishing.py --plans 0:2:28 16:2:12 16:2:20
    python benchmarks/joint_polishing.py --models resnet_digits --seeds 1 2 --networks --lut LUT.csv

A plan ``JOINT:SHARE:OWN`` trains candidates together for ``JOINT`` epochs at ``SHARE`` times ``polish.lr``, and then
each of five SubNets for ``OWN`` epochs with weights of its own, as the rule ``polish`` does with one candidate for each
budget. Networks of ``--networks`` arrive trained, as for ``learning_rates.py``: the five SubNets are spread over the
MACs of thirty random ones, and are the candidates. Those of ``--models`` are networks of the zoo with the SuperNets of
``fronts.py``: the SubNets are the best for 30, 40, 50, 60 and 80 % of the latency, and the three best of each budget
are candidates. Accuracies are those of the test set, in percent; ``ahead`` is how many points the mean of the five is
ahead of that of the first plan, paired by image and clustered by base image. ``images`` are those of polishing, an
image counted once for each network that it is shown to. A training that was killed goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from controls.budgets import contests
from controls.run import Run
from learning_rates import NETWORKS, Subject
from plain_table import plain_table
from rich.console import Console

import autotailor
from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.evaluation import correctness
from autotailor.data.splits import DataSplits
from autotailor.finetuning.joint import config_before_race, train_jointly
from autotailor.finetuning.polishing import PolishConfig, polish
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.ir.supernet import SuperNet
from autotailor.statistics import clustered_mean

BUDGETS = (30, 40, 50, 60, 80)
"""Percent of the latency."""
COUNT = 5
DRAWN = 30
EPOCHS, RATE = 12, 2e-3
"""Of the weight-shared training of a network that arrives trained; the rate is the default of such networks."""


@dataclass(frozen=True)
class Plan:
    """Epochs of the joint training, its learning rate over that of polishing, and epochs of each SubNet's own."""

    joint: int
    lr_share: float
    own: int

    @classmethod
    def parse(cls, text: str) -> Plan:
        """``JOINT:SHARE:OWN``."""
        joint, share, own = text.split(":")
        return cls(int(joint), float(share), int(own))


@dataclass(frozen=True, eq=False)
class Case:
    """A SuperNet, and the SubNets that get weights of their own; ``candidates`` may be more than these."""

    name: str
    seed: int
    net: SuperNet
    original: SuperNet
    data: DataSplits
    subnets: Sequence[SubNet]
    candidates: Sequence[SubNet]
    sections: Mapping[str, Any]
    folder: Path


def of_run(run: Run) -> Case:
    """A network of the zoo."""
    run.prepare()
    reached = [contest for budget, contest in contests(run).items() if budget in BUDGETS]
    best = list(dict.fromkeys(contest.best for contest in reached))
    known = list(dict.fromkeys(subnet for contest in reached for subnet in contest.first(3)))
    folder = run.folder / "joint_polishing"
    return Case(run.model, run.seed, run.net, run.compiled, run.data, best, known, run.configuration, folder)


def of_subject(subject: Subject) -> Case:
    """A network that arrives trained."""
    sections = subject.configuration
    subject.shared(RATE, EPOCHS)
    net = autotailor.load(subject.folder / f"share_{EPOCHS}_{RATE:g}.pt")
    drawn = sample_distinct(net.space, DRAWN, np.random.default_rng(1))
    ordered = sorted(drawn, key=lambda subnet: float(net.macs().predict(subnet.to_array())[0]))
    step = DRAWN // COUNT
    chosen = ordered[step // 2 :: step]
    name, folder = subject.network.name, subject.folder / "joint_polishing"
    return Case(name, 0, net, subject.original, subject.data, chosen, chosen, sections, folder)


def right(case: Case, plan: Plan) -> npt.NDArray[np.float64]:
    """Whether the polished SubNets are right on the test set, ``[SubNets, images]``, percent."""
    polished = {**case.sections["polish"], "joint": {"epochs": plan.joint, "lr_share": plan.lr_share}}
    polished["rounds"] = [{"candidates": 1, "epochs": plan.own}]
    net, joint = case.net, config_before_race(polished, case.sections["finetune"])
    if joint is not None:
        folder = case.folder / f"joint_{plan.joint}_{plan.lr_share:g}"
        net = train_jointly(net, case.original, case.data, case.candidates, joint, folder).net
    names = {str(number): [subnet] for number, subnet in enumerate(case.subnets)}
    untrained = {subnet.id: 0.0 for subnet in case.subnets}  # whatever polishing gives is taken
    config = PolishConfig.from_section(polished)
    folder = case.folder / f"own_{plan.joint}_{plan.lr_share:g}_{plan.own}"
    won, _ = polish(net, case.original, case.data, names, untrained, config, folder)
    found = []
    for each in won.values():
        network = GraphModule(net.slice(each.subnet).with_weights(each.weights or {}), logits=True)
        found.append(100.0 * correctness(network, case.data.test, resolution_of(each.subnet)))
    return np.array(found)


def measure(case: Case, plans: Sequence[Plan]) -> Iterator[dict[str, object]]:
    """The rows of one SuperNet, one for each plan."""
    first: npt.NDArray[np.float64] | None = None
    for plan in plans:
        found = right(case, plan)
        first = found if first is None else first
        groups = case.data.test.groups
        mean, error = clustered_mean(found.mean(0), groups)
        ahead, ahead_error = clustered_mean(found.mean(0) - first.mean(0), groups)
        yield {
            "network": case.name,
            "seed": case.seed,
            "joint": plan.joint,
            "lr_share": plan.lr_share,
            "own": plan.own,
            "images": len(case.data.train) * (plan.joint + plan.own * len(case.subnets)),
            "subnets": " ".join(f"{value:.1f}" for value in found.mean(1)),
            "mean": mean,
            "error": error,
            "ahead": ahead,
            "ahead_error": ahead_error,
        }


def main() -> None:
    """Trains, and writes the table after each plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--plans", nargs="+", type=Plan.parse, default=[Plan(0, 2, 28), Plan(16, 2, 12), Plan(16, 2, 20)]
    )
    parser.add_argument("--networks", nargs="*", default=["test_resnet", "test_efficientnet"])
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the models")
    parser.add_argument("--lut", type=Path, help="LUT of the models; without it MACs stand for latency")
    parser.add_argument("--directory", type=Path, default=Path("fronts"), help="may be that of fronts.py")
    parser.add_argument("--overrides", nargs="*", default=[], help="KEY=VALUE of the configuration")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    rows = []
    for case in cases(arguments):
        for row in measure(case, arguments.plans):
            rows.append(row)
            frame = pd.DataFrame(rows)
            frame.to_csv(arguments.csv, index=False, float_format="%.4f")
            Console(width=200).print(plain_table(frame, "After polishing, test set (%)"))


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """The SuperNets that are asked for, each made when its turn comes."""
    directory = arguments.directory.resolve()
    for network in [network for network in NETWORKS if network.name in arguments.networks]:
        yield of_subject(Subject(network, directory, tuple(arguments.overrides)))
    for model in arguments.models:
        for seed in arguments.seeds:
            yield of_run(Run(directory, model, seed, tuple(arguments.overrides), arguments.lut))


if __name__ == "__main__":
    main()
