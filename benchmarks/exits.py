"""Exits of finished runs: does a budget hold on other pictures, and what do exits gain, against which thresholds?

    python benchmarks/exits.py RESULTS... --csv FILE
    python benchmarks/exits.py RESULTS... --deadlines 3000 --load 1 --csv FILE
    python benchmarks/exits.py RESULTS... --streams 500 --csv FILE
    python benchmarks/exits.py --agreement 100 --csv FILE

RESULTS are folders ``results/MODEL/DEVICE`` of runs with ``space.exits``, after ``python -m autotailor run``. The test
pictures of each, which have neither trained nor dropped an exit, are divided into halves (by base pictures), 20 times:
one half chooses the SubNet, its exits and its thresholds for each budget of the expected cost, and the other half says
what they are worth. Three ways choose on the same half, with the same heads and the same margin below the budget:

- ``exits``: exactly, among all quantiles of all exits;
- ``msdnet``: shares of pictures that leave follow a geometric law p^k, p from 0.05 to 2 in 40 steps, and each threshold
  is the quantile that lets its share leave (Huang et al. 2018, arXiv:1703.09844; ``adaptive_inference.py`` of
  ``kalviny/MSDNet-PyTorch``);
- ``none``: the most accurate SubNet without exits whose cost keeps the budget.

``kept`` is the share of splits in which the mean cost of the other half keeps the budget, and ``gain`` is paired on the
pictures of the other half; its standard error is that of the mean over the splits, widened for halves that overlap.

With ``--deadlines`` the pool of exits answers so many test pictures at each of 30, 60 and 90 % of what its largest
member takes, without thresholds, while ``--load`` processes compete for the processor: the share of answers
that are in time (as the caller sees it), of those that had to wait for the first exit (``overtaken``: nothing else
could be said by then, or hardly), which exits answered, how accurate they were, and how many numbers were not
those of the exit that was named.

With ``--streams`` the pool answers so many test pictures with the thresholds of each budget, in turn with the largest
SubNet without exits, and its latencies as shares of that SubNet's are compared with the shares that the run's table
predicts: in the mean of the pictures (``expected``), and of those that go furthest (``worst``). Each picture is
compared with what the machine did in the moment before it, and of each exit the median counts.

With ``--agreement`` random heads stand behind the stages (of a network of one stage: behind some blocks) of so many
random SubNets of four networks, and all exits are compared: of the ONNX file with all outputs, of the chain of segments
and of ncnn's file with PyTorch; the largest difference as a share of the largest number of the exit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from given import letters
from plain_table import plain_table
from rich.console import Console

import autotailor
from autotailor import accuracy, data, zoo
from autotailor.artifacts import read_json
from autotailor.data.splits import sized
from autotailor.exits.answers import Answers, Costs, ExitError, Policy
from autotailor.exits.choice import SHARES, Candidate, Choice, Chooser, choose
from autotailor.exits.costs import WithExits
from autotailor.exits.files import write_files
from autotailor.exits.heads import find_exits, initial, with_exits
from autotailor.exits.heads import proposed as exits_of
from autotailor.exits.thresholds import undominated, within
from autotailor.pool.verification import run_exits
from autotailor.profiling import exporting_runtime
from autotailor.serving import Request, Service
from autotailor.serving.files import open_pool

SPLITS = 20
STEPS = np.linspace(0.05, 2, 40)
WIDER = np.sqrt(1 / SPLITS + 1)
"""Of a mean over random halves that overlap, as a factor of their standard deviation (Nadeau, Bengio 2003)."""
ANYTIME = ("run", "share", "deadline_ms", "requests", "in_time", "overtaken", "by_exit_percent", "accuracy", "wrong")
DEADLINES = (0.3, 0.6, 0.9)
STREAMS = ("run", "subnet", "budget", "what", "predicted", "measured", "error", "whole_in_table_ms", "whole_ms")
BLOCK, SETTLING = 100, 10
"""Pictures of a stream, after which as many are answered without exits; the first of them find the other's caches."""
WARM, BATCH, TOLERANCE, SIDE = 30, 64, 1e-4, 32
NETWORKS: dict[str, Callable[[], torch.nn.Module]] = {
    "resnet_digits": zoo.resnet_digits,
    "mobilenet_digits": zoo.mobilenet_digits,
    "vit_digits": zoo.vit_digits,
    "letters": lambda: letters.network(10),
}
COLUMNS = ("run", "share", "way", "splits", "kept", "expected", "accuracy", "gain", "gain_error")


def geometric(seen: Answers, costs: Costs) -> list[Policy]:
    """The front of MSDNet's thresholds on some answers, by rising cost."""
    pictures, exits = seen.confidence.shape
    found = []
    for p in STEPS:
        shares = p ** np.arange(1, exits + 2)
        shares /= shares.sum()
        left, thresholds = np.ones(pictures, dtype=bool), list[float | None]()
        for e in range(exits):
            sure = np.sort(seen.confidence[left, e])[::-1]
            count = min(round(float(shares[e]) * pictures), len(sure))
            thresholds.append(float(sure[count - 1]) if count else None)
            left &= seen.confidence[:, e] < (sure[count - 1] if count else np.inf)
        worst = float(costs.reach([each is not None for each in thresholds])[-1])
        found.append(Policy(tuple(thresholds), 0.0, 0.0, 0.0, worst).on(seen, costs))
    return undominated(found, pictures)


def candidates(
    results: Path, only: Sequence[str] = ()
) -> tuple[list[tuple[str, tuple[str, ...], Costs, Answers]], Any]:
    """The SubNets of a run with the answers of their exits to its test pictures, and the base picture of each.

    Args:
        results: of the run.
        only: names of exits that are looked at; all where none is given.
    """
    said, found, groups = read_json(results / "exits.json"), [], None
    for name, each in said["networks"].items():
        with np.load(results / "exits" / name / "answers.npz") as arrays:
            answers = Answers(arrays["test_confidence"], arrays["test_right"])
            groups = arrays["test_groups"]
        exits, costs = tuple(each["exits"]), Costs(tuple(each["segments"]), tuple(each["heads"]))
        kept = [number for number, exit_ in enumerate(exits) if not only or exit_ in only]
        found.append((name, tuple(exits[number] for number in kept), costs.only(kept), answers.only(kept)))
    return found, groups


def by_geometry(each: Candidate, budget: float) -> Choice | None:
    """MSDNet's choice for a SubNet."""
    policy = within(geometric(each.validation, each.costs), budget, len(each.validation))
    return None if policy is None else Choice(each, policy, policy.right(each.validation))


def split(found: Sequence[Any], groups: Any, seed: int) -> dict[tuple[float, str], tuple[bool, float, Any]]:
    """Whether the budget is kept, the mean cost, and how right each picture is, by budget and way."""
    _, group = np.unique(groups, return_inverse=True)
    first = (np.random.default_rng(seed).permutation(group.max() + 1) % 2 == 0)[group]
    whole = [Candidate(name, exits, costs, seen.of(first), seen.of(~first)) for name, exits, costs, seen in found]
    exact = [Chooser(each, groups[first]) for each in whole]
    alone = [Chooser(each.alone, groups[first]) for each in whole]
    largest = max(each.costs.whole for each in whole)
    rows = {}
    for share in SHARES:
        budget = share * largest * (1 + 1e-9)
        theirs = [choice for each in whole if (choice := by_geometry(each, budget)) is not None]
        ways = {
            "exits": choose([*exact, *alone], budget),
            "msdnet": max(theirs, key=lambda choice: choice.policy.accuracy, default=None),
            "none": choose(alone, budget),
        }
        for way, choice in ways.items():
            if choice is not None:
                cost = choice.policy.on(choice.candidate.test, choice.candidate.costs).expected
                rows[share, way] = (cost <= budget, cost / largest, choice.right)
    return rows


def table(results: Path, name: str, only: Sequence[str]) -> pd.DataFrame:
    """One row for each budget and way."""
    found, groups = candidates(results, only)
    splits = [split(found, groups, seed) for seed in range(SPLITS)]
    rows = []
    for share in SHARES:
        for way in ("exits", "msdnet", "none"):
            there = [each[share, way] for each in splits if (share, way) in each]
            if not there:
                continue
            gains = [
                100 * float(np.mean(each[share, "exits"][2] - each[share, way][2]))
                for each in splits
                if (share, way) in each and (share, "exits") in each
            ]
            kept, cost = np.mean([each[0] for each in there]), np.mean([each[1] for each in there])
            right = 100 * np.mean([each[2].mean() for each in there])
            error = WIDER * np.std(gains, ddof=1) if len(gains) > 1 else np.nan
            rows.append((name, share, way, len(there), kept, cost, right, np.mean(gains), error))
    return pd.DataFrame(rows, columns=list(COLUMNS)).round(3)


def test_pictures(results: Path, side: int) -> tuple[Any, Any]:
    """The test pictures of a run at a size, ``[n, channels, side, side]``, and their labels."""
    os.chdir(results.parents[2])  # the project, to which paths of pictures are relative
    section = json.loads((results / "configuration.json").read_text(encoding="utf-8"))["data"]
    splits = accuracy.with_labels(data.load(section), results.parent / "compiled.pt")
    batches = list(splits.test.batches(BATCH))
    images = np.concatenate([sized(images, side).numpy() for images, _ in batches])
    return images, np.concatenate([labels.numpy() for _, labels in batches])


def deadlines(results: Path, name: str, count: int, load: int) -> pd.DataFrame:
    """One row for each deadline."""
    folder = results / "exits" / "pool"
    member = max(open_pool(folder).index.members, key=lambda each: each.latency_ms)
    images, labels = test_pictures(results, member.shape[-1])
    expected = run_exits(open_pool(folder), member, images)
    rows = []
    with Service.of(folder, 60000.0, thresholds=None, pin=member.name) as service:
        number = service.names.index(member.name)
        for _ in range(WARM):
            service.infer(Request(images[0]))
        whole = float(np.median([service.infer(Request(images[0])).latency_ms for _ in range(10 * WARM)]))
        burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
        try:
            for share in DEADLINES:
                took, left, right, wrong = [], [], [], 0
                for turn in range(count):
                    picture = turn % len(images)
                    begin = time.perf_counter()
                    reply = service.infer(Request(images[picture], share * whole))
                    took.append(1e3 * (time.perf_counter() - begin))
                    left.append(reply.exit)
                    right.append(int(reply.outputs.argmax()) == int(labels[picture]))
                    due = expected[reply.exit][picture]
                    wrong += reply.member != number or np.abs(reply.outputs - due).max() > TOLERANCE * np.abs(due).max()
                shares = np.bincount(left, minlength=len(expected)) / count
                is_late = np.array(took) > share * whole
                in_time, overtaken = 1 - is_late.mean(), (is_late & (np.array(left) == 0)).mean()
                told = ", ".join(f"{100 * each:.1f}" for each in shares)
                rows.append(
                    (name, share, share * whole, count, in_time, overtaken, told, 100 * float(np.mean(right)), wrong)
                )
        finally:
            for process in burning:
                process.kill()
                process.wait()
    return pd.DataFrame(rows, columns=list(ANYTIME)).round(4)


def streams(results: Path, name: str, count: int) -> pd.DataFrame:
    """One row for each SubNet, budget of its thresholds, and kind of latency."""
    said, folder = read_json(results / "exits.json")["networks"], results / "exits" / "pool"
    members = open_pool(folder).index.members
    largest = max(members, key=lambda each: each.latency_ms)
    pictures = {each.name: test_pictures(results, each.shape[-1])[0] for each in members}
    rows = []
    with (
        Service.of(folder, 60000.0, thresholds=None, pin=largest.name) as whole,
        Service.of(folder, 60000.0) as early,
    ):
        for member in members:
            costs = Costs(tuple(said[member.name]["segments"]), tuple(said[member.name]["heads"]))
            for budget, thresholds in member.thresholds:
                early.set({"pin": member.name, "thresholds": budget})
                reach = costs.reach([each is not None for each in thresholds])
                exits, shares, alone = list[int](), list[float](), list[float]()
                for begin in range(-BLOCK, count, BLOCK):  # the first block warms up
                    turns = range(begin, begin + BLOCK)
                    given, own = pictures[largest.name], pictures[member.name]
                    now = [whole.infer(Request(given[turn % len(given)])).latency_ms for turn in turns]
                    replies = [early.infer(Request(own[turn % len(own)])) for turn in turns]
                    if begin >= 0:
                        alone += now[SETTLING:]
                        exits += [reply.exit for reply in replies[SETTLING:]]
                        shares += [reply.latency_ms / float(np.median(now)) for reply in replies[SETTLING:]]
                left, share = np.array(exits), np.array(shares)
                medians = {number: float(np.median(share[left == number])) for number in set(exits)}
                table, median = said[largest.name]["whole"], float(np.median(alone))
                expected = float(reach[left].mean()) / table, float(np.mean([medians[each] for each in exits]))
                worst = float(reach[left.max()]) / table, medians[max(exits)]
                for what, (predicted, measured) in (("expected", expected), ("worst", worst)):
                    error = measured / predicted - 1
                    rows.append((name, member.name, budget, what, predicted, measured, error, table, median))
    return pd.DataFrame(rows, columns=list(STREAMS)).round(4)


def agreement(count: int) -> pd.DataFrame:
    """One row for each network and kind of file."""
    rows = []
    for name, make in NETWORKS.items():
        torch.manual_seed(0)
        net = autotailor.compile(make().eval(), resolution=SIDE)
        after = [*exits_of(net)] or [block.name for block in net.blocks[:-1:2]]
        random, worst = np.random.default_rng(0), dict[str, float]()
        answers = 0
        for turn in range(count):
            subnet = net.sample(random)
            graph, kind = net.slice(subnet), ("probe", "full")[turn % 2]
            try:
                places = find_exits(net, subnet, graph, after, kind)
            except ExitError:  # a transformer's tokens have no positions for a convolution
                places = find_exits(net, subnet, graph, after, kind := "probe")
            heads = [initial(place, kind, net.num_classes, random) for place in places]
            for arrays in heads:
                arrays["weight"] = random.normal(size=arrays["weight"].shape).astype(np.float32)
            whole = WithExits(with_exits(graph, places, heads), places)
            pictures = random.normal(size=(2, *graph.shapes[graph.input][1:])).astype(np.float32)
            with tempfile.TemporaryDirectory() as folder:
                errors = write_files(whole, net.names, Path(folder), pictures, exporting_runtime(), np.inf)
            worst = {key: max(error, worst.get(key, 0.0)) for key, error in errors.items()}
            answers += len(places) + 1
        rows += [(name, key, count, answers, error) for key, error in worst.items()]
    return pd.DataFrame(rows, columns=["network", "file", "subnets", "answers", "largest_difference"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="*")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--exits", nargs="*", default=[], help="names of exits that are looked at; all by default")
    parser.add_argument("--deadlines", type=int, default=0, metavar="N", help="requests at each deadline")
    parser.add_argument("--load", type=int, default=1, help="processes that compete with --deadlines")
    parser.add_argument(
        "--streams", type=int, default=0, metavar="N", help="pictures with the thresholds of each budget"
    )
    parser.add_argument("--agreement", type=int, default=0, metavar="N", help="random SubNets of each network")
    asked = parser.parse_args()
    csv, runs = asked.csv and asked.csv.resolve(), [each.resolve() for each in asked.results]
    if not (asked.agreement or runs):
        parser.error("name folders results/MODEL/DEVICE, or --agreement N")
    if asked.agreement:
        title, tables = "Exits of random SubNets, beside PyTorch", [agreement(asked.agreement)]
    elif asked.streams:
        title = "Latencies of streams, measured beside what the table predicts"
        tables = [streams(each, each.parent.name, asked.streams) for each in runs]
    elif asked.deadlines:
        title = "Answers at deadlines, as shares of the whole latency"
        tables = [deadlines(each, each.parent.name, asked.deadlines, asked.load) for each in runs]
    else:
        title = "Exits, MSDNet's thresholds, and no exits; gain is that of exits"
        tables = [table(each, each.parent.name, asked.exits) for each in runs]
    rows = pd.concat(tables)
    shown = rows.map(lambda each: f"{each:.1e}" if isinstance(each, float) else each) if asked.agreement else rows
    Console(width=140).print(plain_table(shown, title))
    if csv:
        rows.to_csv(csv, index=False)


if __name__ == "__main__":
    main()
