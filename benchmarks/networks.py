"""Tries the compiler on many classifiers: their spaces, their elasticity, and whether all forms of a SubNet agree.

    python benchmarks/networks.py                      # every network that has no row yet
    python benchmarks/networks.py --again              # also those whose row says that something failed
    python benchmarks/networks.py timm:resnet50 torchvision:vgg16_bn --subnets 20

Each network is compiled from its ONNX file, without a configuration, in a process of its own. Each network's row is
written to ``networks.csv`` beside this file as soon as it is known; a network that fails has its error in the row.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from acceptance import checks, classifiers

TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = (
    "network", "result", "modifications", "variants", "variables", "elastic_share", "smallest_share",
    "compile_s", "response", "largest_error", "subnet_error", "subnets", "static", "seconds", "error",
)  # fmt: skip
HALF = 0.5


def examine(source: str, count: int, threads: int) -> dict[str, Any]:
    """Compiles and checks one network; returns its row."""
    torch.set_num_threads(threads)
    row: dict[str, Any] = {}
    try:
        _examine(source, count, row)
    except Exception as error:
        row |= {"result": "ERROR", "error": describe(error)}
    return row


def _examine(source: str, count: int, row: dict[str, Any]) -> None:
    model = classifiers.export(source)
    start = time.perf_counter()
    net = checks.compile_model(model)
    row["compile_s"] = round(time.perf_counter() - start, 2)
    kinds = Counter(v.kind for v in net.space)
    row["variables"] = " ".join(f"{kind}:{n}" for kind, n in sorted(kinds.items()))
    row["modifications"] = net.space.num_modifications
    row["variants"] = f"{net.space.num_variants:.3e}" if net.space.num_variants < 10**300 else "huge"
    row["static"] = "; ".join(f"{n}x {reason}" for reason, n in _reasons(net).most_common(6))
    row["elastic_share"] = round(net.elastic_share().elastic, 3)
    row["smallest_share"] = round(checks.smallest_share(net), 3)
    row["response"] = round(checks.response(model, net.input_shape[-1]), 3)
    if not math.isfinite(row["response"]):
        raise OverflowError("the original's own logits overflow with weights of order 1: nothing to compare")
    row["largest_error"] = float(f"{checks.check_largest(net, model)[0]:.1e}")
    failed = _check_subnets(net, count, row)
    too_few = [] if kinds.keys() & checks.WIDTHS else ["no width"]
    too_few += ["smallest too large"] * (row["smallest_share"] > HALF)
    wrong = ["largest differs"] * (row["largest_error"] > checks.TOLERANCE) + failed
    row["result"] = "WRONG" if wrong else "rigid" if too_few else "ok"
    row["error"] = "; ".join(wrong + too_few)


def _check_subnets(net: Any, count: int, row: dict[str, Any]) -> list[str]:
    module = net.module()
    worst, wrong = 0.0, []
    for row["subnets"], subnet in enumerate(checks.subnets(net, count), 1):
        check = checks.check_subnet(net, module, subnet)
        worst = max(worst, check.error)
        if not check.passed:
            errors = f"batch {check.batch_error:.0e} elastic {check.elastic_error:.0e} onnx {check.onnx_error:.0e}"
            wrong.append(f"{errors} shapes {check.wrong_shapes[:1]} of {subnet.to_json()}")
    row["subnet_error"] = float(f"{worst:.1e}")
    return [f"{len(wrong)} SubNets, first: {wrong[0]}"] if wrong else []


def _reasons(net: Any) -> Counter[str]:
    """Static parts by kind and reason; numbers in reasons are replaced, so that equal reasons are counted together."""
    return Counter(f"{p.kind}: {re.sub(r'[0-9]+', 'N', p.reason)}" for p in net.static_parts)


def describe(error: BaseException) -> str:
    """Type and message of an error, and its innermost place in autotailor."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "autotailor" in code.co_filename:
            place = f" [{Path(code.co_filename).name}:{trace.tb_lineno}]"
        trace = trace.tb_next
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}{place}"


def main() -> None:
    """Examines missing networks; writes and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=[], help="timm:NAME, torchvision:NAME or module:factory")
    parser.add_argument("--again", action="store_true", help="repeat networks whose row is not ok")
    parser.add_argument("--subnets", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    for source in arguments.networks or missing(arguments.table, arguments.again):
        start = time.perf_counter()
        try:
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
                row = pool.submit(examine, source, arguments.subnets, arguments.threads).result()
        except Exception as error:
            row = {"result": "ERROR", "error": describe(error)}
        row |= {"network": source, "seconds": round(time.perf_counter() - start)}
        append(arguments.table, row)
        print({key: row.get(key) for key in COLUMNS if row.get(key) not in (None, "")}, flush=True)


def missing(table: Path, again: bool) -> list[str]:
    """Networks without a row; with ``again``, networks without a row that says ok."""
    wanted = [*classifiers.ISSUE, *classifiers.FURTHER]
    if not table.exists():
        return wanted
    known = pd.read_csv(table)
    done = set(known[known["result"] == "ok"]["network"] if again else known["network"])
    return [source for source in wanted if source not in done]


def append(table: Path, row: dict[str, Any]) -> None:
    """Adds a network's row to the table, in place of the network's earlier row."""
    new = pd.DataFrame([row], columns=list(COLUMNS))
    if table.exists():
        known = pd.read_csv(table)
        new = pd.concat([known[known["network"] != row["network"]], new], ignore_index=True)
    new.to_csv(table, index=False)


if __name__ == "__main__":
    main()
