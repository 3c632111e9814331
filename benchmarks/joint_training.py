"""Measures what members of a pool gain when the shared weights are trained on for them alone.

    python benchmarks/joint_training.py --models resnet_digits --seeds 0 1 2 --lut results/resnet_digits/host/lut.csv

The pipeline of each seed trains a SuperNet, as for ``fronts.py``. Members are chosen from its front as the rule
``train_pool`` chooses them, and trained as this rule trains them. Accuracies are those of the test set, in percent:

- ``before``, ``after``: mean of the members with the weights that all SubNets share, and with those of the training.
- ``gain``: their difference, with its standard error, paired by image and clustered by base image.
- ``fastest_gain``, ``slowest_gain``: the same of the faster and the slower half of the members.
- ``half_before``, ``half_after``: of the slowest member that takes at most half of the original network's latency.
- ``largest_before``, ``largest_after``: of the largest SubNet, which is trained with the members.
- ``others_before``, ``others_after``: mean of random SubNets, which nobody trains any more.

Without ``--lut``, MACs stand for latency. A training that was killed goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from controls.budgets import predicted_accuracy, searching
from controls.run import Run
from plain_table import plain_table
from rich.console import Console

from autotailor import search
from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.finetuning import FinetuneConfig
from autotailor.finetuning.joint import train_jointly
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.supernet import SuperNet
from autotailor.pool.config import PoolConfig
from autotailor.pool.members import members_of
from autotailor.statistics import clustered_mean

TITLE = "Members of a pool before and after their training, test set (%)"
OTHERS = 30
"""Random SubNets that are not trained on."""

Right = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """Whether SubNets are right: mean over some of them, for each image of the test set ``[n]``, percent."""

    members: Right
    fastest: Right
    slowest: Right
    half: Right
    largest: Right
    others: Right


def members_on_front(run: Run, config: PoolConfig) -> tuple[SubNet, ...]:
    """The members of the pool of a run, the fastest first."""
    objectives = search.Objectives(predicted_accuracy(run), run.cost)
    front = search.search(objectives, searching(run)).front
    return members_of(front, config.members, config.slowdown)[1]


def judge(run: Run, net: SuperNet, members: Sequence[SubNet]) -> Judged:
    """Evaluates SubNets with the weights of a SuperNet."""
    rng = random.Random(run.seed)
    others = [net.sample(rng) for _ in range(OTHERS)]
    wanted = list(dict.fromkeys([*members, *others, net.largest()]))
    calibrator = Calibrator(run.data, run.finetune.calibration)
    evaluator = Evaluator(net.module().eval(), calibrator, run.data.test, run.finetune.workers)
    right = {subnet: 100.0 * outcome.values for subnet, outcome in evaluator.all(wanted)}

    def mean(subnets: Sequence[SubNet]) -> Right:
        found: Right = np.mean([right[subnet] for subnet in subnets], axis=0)
        return found

    middle = len(members) // 2
    costs = run.cost.predict(stack([*members, net.largest()]))
    half = members[max(0, int(np.searchsorted(costs[:-1], costs[-1] / 2, side="right")) - 1)]
    means = (mean(each) for each in (members, members[:middle], members[middle:], [half], [net.largest()], others))
    return Judged(*means)


def measure(run: Run, config: PoolConfig) -> dict[str, object]:
    """The row of one SuperNet and one training."""
    members = members_on_front(run, config)
    section = config.training(run.configuration["finetune"])
    folder = run.folder / "joint" / f"{len(members)}_{config.epochs}_{config.lr_share:g}"
    result = train_jointly(run.net, run.compiled, run.data, members, FinetuneConfig.from_section(section), folder)
    before, after = judge(run, run.net, members), judge(run, result.net, members)
    groups = run.data.test.groups
    gain, error = clustered_mean(after.members - before.members, groups)
    return {
        "model": run.model,
        "seed": run.seed,
        "members": len(members),
        "epochs": config.epochs,
        "lr_share": config.lr_share,
        "images": result.images,
        "before": before.members.mean(),
        "after": after.members.mean(),
        "gain": gain,
        "gain_error": error,
        "fastest_gain": (after.fastest - before.fastest).mean(),
        "slowest_gain": (after.slowest - before.slowest).mean(),
        "half_before": before.half.mean(),
        "half_after": after.half.mean(),
        "largest_before": before.largest.mean(),
        "largest_after": after.largest.mean(),
        "others_before": before.others.mean(),
        "others_after": after.others.mean(),
    }


def main() -> None:
    """Trains, and writes the table after each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet_digits"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--members", type=int, nargs="+", default=[PoolConfig.members])
    parser.add_argument("--epochs", type=int, nargs="+", default=[PoolConfig.epochs])
    parser.add_argument("--lr-share", type=float, nargs="+", default=[PoolConfig.lr_share])
    parser.add_argument("--lut", type=Path, help="LUT of the models; without it MACs stand for latency")
    parser.add_argument("--directory", type=Path, default=Path("fronts"), help="may be that of fronts.py")
    parser.add_argument("--overrides", nargs="*", default=[], help="KEY=VALUE of the configuration")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    configs = [
        PoolConfig(members=members, epochs=epochs, lr_share=share)
        for members in arguments.members
        for epochs in arguments.epochs
        for share in arguments.lr_share
    ]
    rows = []
    for model in arguments.models:
        for seed in arguments.seeds:
            run = Run(arguments.directory.resolve(), model, seed, tuple(arguments.overrides), arguments.lut)
            run.prepare()
            for config in configs:
                rows.append(measure(run, config))
                frame = pd.DataFrame(rows)
                frame.to_csv(arguments.csv, index=False, float_format="%.4f")
                Console(width=250).print(plain_table(frame, TITLE))


if __name__ == "__main__":
    main()
