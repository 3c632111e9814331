"""Networks of any task: do they compile, and do all forms of their SubNets agree?

    OMP_NUM_THREADS=1 python benchmarks/tasks.py graphs --subnets 200
    python benchmarks/tasks.py graphs --only BiFPN U-Net --subnets 5

``graphs`` compiles fourteen networks (``graphs/``) with random weights, without a configuration, each in a process of
its own, and exports random SubNets of each: the largest error of an output, relative to its largest number, of the
built module, of the ONNX file in onnxruntime and of ncnn's files against the SuperNet's own forward. A network's row
is written into ``--csv`` as soon as it is known, in place of its earlier row.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from graphs import CASES
from graphs.agreement import Row, examined

SHOWN = ["network", "outputs", "modifications", "elastic_share", "response", "subnets", "wrong"]
SHOWN += ["error_torch", "error_onnxruntime", "error_ncnn"]


def graphs(arguments: argparse.Namespace) -> None:
    """Examines networks; writes and prints their rows."""
    for name in arguments.only or CASES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            try:
                row: Row = pool.submit(examined, name, arguments.subnets, arguments.seed).result()
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


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["graphs"])
    parser.add_argument("--only", nargs="*", choices=CASES, help="these networks")
    parser.add_argument("--subnets", type=int, default=20, help="of each network, the smallest among them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, default=Path(__file__).parent / "tasks_graphs.csv")
    graphs(parser.parse_args())


if __name__ == "__main__":
    main()
