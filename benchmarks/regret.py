"""Measures what the choice of a SubNet costs: the polished SubNet of a budget against forty polished rivals near it.

    python benchmarks/regret.py --lut results/resnet_digits/host/lut.csv --budgets 50 30 70 --overrides polish=short

For each budget, a share of the original network's latency, the search chooses candidates and the race of the rule
``polish`` one of them. Rivals are other SubNets whose predicted latency is at most 5 % below the budget: half of them
are those that the accuracy model thinks best among at least 4,000 random SubNets of the space, the other half any. All
rivals are polished in lockstep, for as many epochs as the winner of the race. Columns of ``regret.csv``, accuracies in
percent:

- ``chosen``: accuracy of the chosen SubNet on the test set.
- ``best``: the same of the rival that is best on the validation set. ``regret`` is the difference, with its standard
  error, paired by image and clustered by base image.
- ``luckiest``: the best of all rivals on the test set itself. As the luckiest of forty it is too good to be true.
- ``rank``: how many rivals are more accurate than the chosen SubNet on the test set.
- ``validation_rank``: the same on the validation set, where the race has chosen among fewer.

Parts that are finished are read, and training goes on from its checkpoints. Without ``--lut``, MACs stand for latency.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from controls.budgets import BUDGETS, Contest, contests, evaluation, predicted_accuracy
from controls.methods import Methods
from controls.outcome import Outcome
from controls.run import Run
from plain_table import plain_table
from rich.console import Console

from autotailor import sensitivity
from autotailor.finetuning.config import LARGEST
from autotailor.finetuning.polishing import PolishConfig, polish
from autotailor.ir.space.subnet import IntArray, SubNet, canonical, stack
from autotailor.statistics import accuracy, accuracy_drop

NEAR = 0.95
"""Rivals have at least this share of the budget."""
DRAWS = 4000
"""Random SubNets, at least; as many at a time."""
MOST_DRAWS = 40_000
WALKERS = 4
"""Random SubNets, for each rival that is wanted, that are changed until they come near the budget."""
STEPS = 1000
"""Random changes of one of them, at most."""
TITLE = "The chosen SubNet against polished rivals, test set (%)"
CHOSEN = "chosen"


@dataclass(frozen=True, eq=False)
class Trained:
    """Polished SubNets of one budget, by id; the chosen one's id."""

    chosen: str
    outcomes: Mapping[str, Outcome]


def near(run: Run, budget: int, avoid: SubNet, count: int) -> list[SubNet]:
    """At least ``count`` distinct random SubNets near a budget, fewer where a great many tries find no more."""
    limit = budget / 100 * float(run.cost.predict(run.net.largest().to_array())[0])
    rng = random.Random(1000 * run.seed + budget)
    found = dict[SubNet, None]()
    for _ in range(MOST_DRAWS // DRAWS):
        drawn = stack(run.net.sample(rng) for _ in range(DRAWS))
        found |= _near_ones(run, drawn, limit, avoid)
        if len(found) >= count:
            return list(found)
    walkers = stack(run.net.sample(rng) for _ in range(WALKERS * count))
    return list(found | _near_ones(run, _walked(run, walkers, limit, run.seed), limit, avoid))


def _near_ones(run: Run, indices: IntArray, limit: float, avoid: SubNet) -> dict[SubNet, None]:
    """Those of SubNets ``[n, variables]`` that are near a budget, without one of them."""
    rows = indices[_distance(run, indices, limit) == 0]
    return dict.fromkeys(subnet for row in rows if (subnet := SubNet.from_array(run.net.space, row)) != avoid)


def _distance(run: Run, indices: IntArray, limit: float) -> npt.NDArray[np.float64]:
    """How far the costs of SubNets ``[n, variables]`` are from what counts as near a budget: ``[n]``."""
    cost = run.cost.predict(indices)
    return np.maximum(0.0, np.maximum(NEAR * limit - cost, cost - limit))


def _walked(run: Run, walkers: IntArray, limit: float, seed: int) -> IntArray:
    """SubNets ``[n, variables]`` after random changes of one variable each, none of which leads away from a budget."""
    rng = np.random.default_rng(seed)
    choices = np.array([len(variable.choices) for variable in run.net.space])
    left = _distance(run, walkers, limit)
    for _ in range(STEPS):
        away = np.flatnonzero(left)
        if len(away) == 0:
            break
        changed = walkers[away]
        columns = rng.integers(len(choices), size=len(away))
        changed[np.arange(len(away)), columns] = rng.integers(choices[columns])
        changed = canonical(run.net.space, changed)
        then = _distance(run, changed, limit)
        nearer = then <= left[away]
        walkers[away[nearer]], left[away[nearer]] = changed[nearer], then[nearer]
    return walkers


def rivals(run: Run, budget: int, avoid: SubNet, count: int) -> list[SubNet]:
    """Half of them are those predicted best near the budget, half of them any others near the budget."""
    found = near(run, budget, avoid, 4 * count)
    if len(found) < count:
        raise SystemExit(
            f"regret.py: {len(found)} SubNets are near {budget} %, fewer than --rivals {count}: "
            "take another budget, or fewer rivals"
        )
    predicted = predicted_accuracy(run).predict(stack(found))
    ordered = [found[place] for place in np.argsort(-predicted)]
    best, rest = ordered[: count // 2], ordered[count // 2 :]
    return best + random.Random(run.seed).sample(rest, min(count - len(best), len(rest)))


def train(run: Run, budget: int, contest: Contest, count: int) -> Trained:
    """Polishes the chosen SubNet and its rivals, where this is not done yet."""
    folder = run.folder / "regret" / f"{budget}"
    if not any(folder.glob(f"{CHOSEN}_*.json")):
        race = replace(run.polish, teacher=LARGEST)
        _polish(run, {CHOSEN: contest.subnets}, contest.accuracies, race, folder, "race", f"{CHOSEN}_")
    winner = next(iter(folder.glob(f"{CHOSEN}_*.json")))
    chosen = winner.stem.removeprefix(f"{CHOSEN}_")
    others = rivals(run, budget, next(s for s in contest.subnets if s.id == chosen), count)
    if any(not (folder / f"{subnet.id}.json").is_file() for subnet in others):
        journal = folder / "inherited.jsonl"
        measured = sensitivity.measure_accuracies(run.net, run.data, others, config=evaluation(run), journal=journal)
        inherited = {id_: each.accuracy for id_, each in measured.items()}
        alike = tuple(replace(each, candidates=1) for each in run.polish.rounds)
        config = replace(run.polish, rounds=alike, teacher=LARGEST)
        _polish(run, {subnet.id: [subnet] for subnet in others}, inherited, config, folder, "rivals", "")
    outcomes = {subnet.id: Outcome.read(folder / f"{subnet.id}.json") for subnet in others}
    return Trained(chosen, {chosen: Outcome.read(winner)} | outcomes)


def _polish(
    run: Run,
    contests: Mapping[str, Sequence[SubNet]],
    inherited: Mapping[str, float],
    config: PolishConfig,
    folder: Path,
    work: str,
    prefix: str,
) -> None:
    """Holds a race and writes one file for the winner of each contest."""
    winners, _ = polish(run.net, run.compiled, run.data, contests, inherited, config, folder / work)
    for winner in winners.values():
        Methods(run).of(winner).write(folder / f"{prefix}{winner.subnet.id}.json")


def judge(run: Run, budget: int, trained: Trained) -> dict[str, object]:
    """The row of one budget."""
    groups = run.data.test.groups
    chosen = trained.outcomes[trained.chosen]
    others = [outcome for id_, outcome in trained.outcomes.items() if id_ != trained.chosen]
    best = max(others, key=lambda outcome: outcome.validation)
    tests = np.array([accuracy(outcome.right, groups)[0] for outcome in others])
    percent, error = accuracy(chosen.right, groups)
    regret, regret_error = accuracy_drop(best.right, chosen.right, groups)
    return {
        "model": run.model,
        "seed": run.seed,
        "budget": budget,
        "rivals": len(others),
        "latency": 100 * chosen.latency,
        "chosen": percent,
        "standard_error": error,
        "best": accuracy(best.right, groups)[0],
        "regret": regret,
        "regret_error": regret_error,
        "luckiest": float(tests.max()),
        "median": float(np.median(tests)),
        "rank": int((tests > percent).sum()),
        "validation_rank": sum(outcome.validation > chosen.validation for outcome in others),
    }


def main() -> None:
    """Trains what is missing, and writes the table after each budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet_digits"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS), choices=BUDGETS, help="in this order")
    parser.add_argument("--rivals", type=int, default=40)
    parser.add_argument("--lut", type=Path, help="LUT of the models; without it MACs stand for latency")
    parser.add_argument("--directory", type=Path, default=Path("fronts"), help="may be that of fronts.py")
    parser.add_argument("--overrides", nargs="*", default=[], help="KEY=VALUE of the configuration")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    rows = []
    for model in arguments.models:
        for seed in arguments.seeds:
            run = Run(arguments.directory.resolve(), model, seed, tuple(arguments.overrides), arguments.lut)
            run.prepare()
            reached = contests(run)
            for budget in [budget for budget in arguments.budgets if budget in reached]:
                rows.append(judge(run, budget, train(run, budget, reached[budget], arguments.rivals)))
                frame = pd.DataFrame(rows)
                frame.to_csv(arguments.csv, index=False, float_format="%.4f")
                Console(width=200).print(plain_table(frame, TITLE))


if __name__ == "__main__":
    main()
