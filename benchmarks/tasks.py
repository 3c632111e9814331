"""Networks of any task: do all forms of their SubNets agree, and what are SubNets worth beside uniform width?

    OMP_NUM_THREADS=1 python benchmarks/tasks.py graphs --subnets 200 --minutes 30
    OMP_NUM_THREADS=1 python benchmarks/tasks.py pipelines --only sound --seed 0

``graphs`` compiles fourteen networks (``graphs/``) with random weights, without a configuration, each in a process of
its own, and exports random SubNets of each: the largest error of an output, relative to its largest number, of the
built module, of the ONNX file in onnxruntime and of ncnn's files against the SuperNet's own forward. A network's row
is written into ``tasks_graphs.csv`` as soon as it is known, in place of its earlier row.

``pipelines`` takes four cases (``pipelines/``) from their data and a trained network to exports for 60 and 50 % of the
latency (of the MACs with ``--device macs``), and trains networks of uniform width beside them
(``pipelines/comparison.py``). Rows are written into ``tasks_pipelines.csv`` as soon as they are known; those that are
there are not made again. What is made on the way lies in ``--directory``.
"""

from __future__ import annotations

import argparse
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from graphs import CASES as GRAPHS
from graphs.agreement import Row, examined
from pipelines import CASES as PIPELINES
from pipelines.comparison import Walk, compared

SHOWN = ["network", "outputs", "modifications", "elastic_share", "response", "subnets", "wrong"]
SHOWN += ["error_torch", "error_onnxruntime", "error_ncnn"]


def graphs(arguments: argparse.Namespace) -> None:
    """Examines networks; writes and prints their rows."""
    for name in arguments.only or GRAPHS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            try:
                row: Row = pool.submit(examined, name, arguments.subnets, arguments.seed, arguments.minutes).result()
            except Exception as error:  # whatever ends one network, the others are examined
                row = {"first_wrong": f"{type(error).__name__} {' '.join(str(error).split())[:400]}"}
        table = pd.DataFrame([{"network": name} | row])
        if arguments.csv.exists():
            known = pd.read_csv(arguments.csv)
            table = pd.concat([known[known["network"] != name], table], ignore_index=True)
        table.to_csv(arguments.csv, index=False)
        print({"network": name} | row, flush=True)
    table = pd.read_csv(arguments.csv)
    print(table[[name for name in SHOWN if name in table]].to_string(index=False))


def pipelines(arguments: argparse.Namespace) -> None:
    """Takes cases to their exports; writes and prints their rows."""
    path: Path = arguments.csv
    for name in arguments.only or PIPELINES:
        rows = pd.read_csv(path, keep_default_na=False, na_values=["nan"]).to_dict("records") if path.exists() else []
        folder = (arguments.directory / name / f"seed_{arguments.seed}").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        walk = Walk(name, folder, arguments.seed, arguments.device, arguments.recipe)
        asked = (name, arguments.seed, arguments.device, arguments.recipe)
        ours = [row for row in rows if (row["case"], row["seed"], row["device"], row["recipe"]) == asked]
        known = {(str(row["budget"]), str(row["network"])) for row in ours}
        for row in compared(walk, known):
            rows.append(row)
            pd.DataFrame(rows).round(3).to_csv(path, index=False, na_rep="nan")
            print(row, flush=True)


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["graphs", "pipelines"])
    parser.add_argument("--only", nargs="*", choices=[*GRAPHS, *PIPELINES], help="these networks, or cases")
    parser.add_argument("--subnets", type=int, default=20, help="of each network, the smallest among them")
    parser.add_argument("--minutes", type=float, default=math.inf, help="of each network, after which none follows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="host", help="what budgets are of: latency of host, or macs")
    parser.add_argument("--recipe", default="quick", help="of the runs: a file of conf/recipe")
    parser.add_argument("--csv", type=Path, help="tasks_PART.csv beside this file where none is named")
    parser.add_argument("--directory", type=Path, default=Path("results/tasks"), help="of what pipelines make")
    arguments = parser.parse_args()
    arguments.csv = (arguments.csv or Path(__file__).parent / f"tasks_{arguments.part}.csv").resolve()
    {"graphs": graphs, "pipelines": pipelines}[arguments.part](arguments)


if __name__ == "__main__":
    main()
