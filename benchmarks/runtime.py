"""Compares controllers of a pool under load: ours, and those of the papers, on one recorded trace of all members.

    python benchmarks/runtime.py results/resnet_digits/host/pool

Under each load (co-runners on the pool's core: 0, 1, 3, 0; a sawtooth of CPU quota, by cgroup or else by SIGSTOP;
copies of memory on other cores; random bursts) all members run in turn, round after round, for ``--seconds``. In each
round a controller gets the latency of the member that it has chosen, so that all controllers see the same load:

1. ``largest`` and ``smallest``, always.
2. ``best fixed``: the member that would have been the best fixed one in hindsight, with at most 10 % missed deadlines.
3. ``one ratio``: AdaptiveNet's controller (section 5.3), with the mean ratio of the last five inferences.
4. ``load index``: AdaScale's (section IV), from /proc/stat, forecast by an autoregressive model.
5. ``ours``: ``libautotailor.so``, as the server runs it where no quota can be read; ``ours, quota read``: where the
   control group's files say it, and where there is one.
6. ``clairvoyant``: knows the latencies of all members within half a second, and not the luck of a single inference;
   it runs the most accurate member that meets 95 % of its deadlines. ``one late`` runs what it ran one inference
   before: what changes between two inferences, a controller that only sees inferences cannot know.

Latencies without load are the medians of CPU time in the first phase, for all controllers alike; the deadline is
``--room`` times the largest member's median latency there. Beside it, a live run measures
switches, stalls, memory, and the time of decisions and of the monitor. Nothing else should run on the machine. Writes
``runtime.csv`` and ``runtime_live.csv`` beside this file; the traces go to ``--traces``, which ``--read`` judges anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from adapting.live import measures
from adapting.loads import LOADS, Step, bursts, quota_of
from adapting.recording import Recorded, record
from adapting.replay import accuracies, best_fixed, clairvoyant, judge, one_late, play, predictions
from adapting.rivals import Fixed, LoadIndex, Ours, Ratio

from autotailor.serving import Quota
from autotailor.serving.demo.drive import pinned_to_one_core
from autotailor.serving.files import Member, OpenPool, open_pool

MOST_MISSED = 0.1
"""Deadlines that may be missed in all loads."""
SEEN = 0.95
"""Probability with which the clairvoyant meets its deadlines."""
PREPARED_S = 0.02


def main() -> None:
    """Records what is missing, judges, prints the tables, writes the CSVs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--seconds", type=float, default=12.0, help="of each load")
    parser.add_argument("--room", type=float, default=1.5)
    parser.add_argument("--quantile", type=float, default=0.9, help="of our controller")
    parser.add_argument("--seed", type=int, default=0, help="of the random bursts")
    parser.add_argument("--switches", type=int, default=10_000, help="of the live run; 0 leaves it out")
    parser.add_argument("--traces", type=Path, default=Path("runtime-traces"))
    parser.add_argument("--read", action="store_true", help="read the traces, measure nothing")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    pool = open_pool(arguments.pool)
    arguments.traces.mkdir(parents=True, exist_ok=True)
    if not arguments.read:
        with pinned_to_one_core() as core:
            for name, steps in (LOADS | {"bursts": partial(bursts, seed=arguments.seed)}).items():
                made = record(pool, steps(arguments.seconds), arguments.seconds, core or 0)
                made.save(arguments.traces / f"{pool.index.model}_{name}.npz")
    traces = {name: Recorded.load(arguments.traces / f"{pool.index.model}_{name}.npz") for name in LOADS}
    table = judged(pool, traces, arguments.room, arguments.quantile)
    table.to_csv(arguments.csv, index=False, float_format="%.4f")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    if not arguments.read and arguments.switches:
        live = pd.DataFrame(measures(arguments.pool, arguments.switches), columns=["measure", "value", "unit"])
        live.to_csv(arguments.csv.with_stem(f"{arguments.csv.stem}_live"), index=False, float_format="%.4g")
        print(live.to_string(index=False, float_format=lambda value: f"{value:.4g}"))


def timed(member: Member, latency_ms: float) -> Member:
    """The member with the latency that it has here without load, for all controllers alike; its classes keep shares."""
    factor = latency_ms / member.latency_ms
    compute, memory, fixed = (each * factor for each in member.split_ms)
    return replace(member, split_ms=(compute, memory, fixed))


def quota_at(recorded: Recorded, steps: Sequence[Step], second: float) -> Quota:
    """What the control group's files said at a second of a trace."""
    at = int(np.searchsorted(recorded.seconds, second, side="right")) - 1
    return quota_of(steps, int(recorded.step[max(at, 0)]))


def judged(pool: OpenPool, traces: dict[str, Recorded], room: float, quantile: float) -> pd.DataFrame:
    """One row for each load and controller."""
    first = traces["co-runners"].part(0, int(np.count_nonzero(traces["co-runners"].step == 0)))
    members = [timed(each, float(np.median(cpu))) for each, cpu in zip(pool.index.members, first.cpu.T, strict=True)]
    accuracy, largest = accuracies(members), len(members) - 1
    deadline = room * float(np.median(first.wall[:, -1]))
    prepared = [PREPARED_S] * len(members)
    rows = []
    for load, recorded in traces.items():
        controllers = {
            "largest": Fixed(largest),
            "smallest": Fixed(0),
            "best fixed": Fixed(best_fixed(recorded, accuracy, deadline, MOST_MISSED)),
            "one ratio": Ratio(members, deadline),
            "load index": LoadIndex(members, deadline),
            "ours": Ours(members, deadline, quantile),
        }
        steps = LOADS[load](1.0)  # of other lengths
        if any(step.quota < 1 for step in steps):
            controllers["ours, quota read"] = Ours(members, deadline, quantile, partial(quota_at, recorded, steps))
        played = {name: play(recorded, each, largest, prepared) for name, each in controllers.items()}
        played["clairvoyant"] = clairvoyant(recorded, accuracy, deadline, SEEN)
        played["one late"] = one_late(recorded, played["clairvoyant"], largest)
        found = {name: judge(recorded, each, accuracy, deadline) for name, each in played.items()}
        least, most = found["smallest"].accuracy, found["clairvoyant"].accuracy
        predicted = np.array(predictions(recorded, Ours(members, deadline, quantile), largest, prepared))
        error, tau, ratio_error, ratio_tau = np.median(predicted, axis=0) if len(predicted) else [np.nan] * 4
        for name, each in found.items():
            row = {"model": pool.index.model, "load": load, "controller": name, **asdict(each)}
            row["gain"] = (each.accuracy - least) / (most - least) if most > least else np.nan
            row["against_largest"] = each.latency_ms / found["largest"].latency_ms - 1
            row |= {"predicted_error": np.nan, "predicted_tau": np.nan}
            if name == "ours":
                row |= {"predicted_error": error, "predicted_tau": tau}
            if name == "one ratio":
                row |= {"predicted_error": ratio_error, "predicted_tau": ratio_tau}
            rows.append(row | {"deadline_ms": deadline, "rounds": len(recorded.seconds), "quota_by": recorded.how})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
