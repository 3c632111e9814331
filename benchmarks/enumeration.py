"""Counts the unique operators of the paper's seven spaces, and measures how long it takes to list them.

    OMP_NUM_THREADS=1 python benchmarks/enumeration.py            # all seven
    OMP_NUM_THREADS=1 python benchmarks/enumeration.py resnet50 levit --csv enumeration.csv

Each network is compiled from its ONNX form in memory, with its space of ``conf/model``; like every source, the network
is checked and run once. Operators are fused by ncnn's rules. The table has CPU seconds of one process on one core, and
the CPU minutes of the paper's Table 2 for comparison. Wall seconds are meaningful on an idle machine only.
ResNet50 has 3,802 operators: 3,655, and 147 activations behind residual sums, which ncnn runs as separate layers.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

import autotailor
from autotailor import config
from autotailor.compiler.sources.export import export_module
from autotailor.compiler.sources.network import create_network
from autotailor.enumeration import enumerate_operators
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION

CONF = Path(__file__).parents[1] / "conf"
PAPER_MINUTES = {
    "resnet50": 11.8, "mobilenetv2": 2.2, "mobilenetv3_ofa": None, "proxylessnas": None, "convnext_tiny": 4.8,
    "vit_base": None, "levit": 46.5,
}  # fmt: skip
COLUMNS = (
    "network",
    "modifications",
    "variants",
    "places",
    "operators",
    "compile_cpu_s",
    "compile_wall_s",
    "enumerate_cpu_s",
    "enumerate_wall_s",
    "paper_cpu_min",
)


def measure(name: str) -> dict[str, Any]:
    """Compiles one network and lists its operators; returns a row of the table."""
    model = config.compose(CONF, name, "host")["model"]
    network = create_network(model["source"], pretrained=False)
    onnx_model = ir.to_proto(export_module(network, model["resolution"]))
    start = _now()
    net = autotailor.compile(onnx_model, model["space"], name=name)
    variants = net.space.num_variants
    compiled = _now()
    operators = enumerate_operators(net, NCNN_FUSION)
    end = _now()
    return {
        "network": name,
        "modifications": net.space.num_modifications,
        "variants": f"{variants:.4e}",
        "places": len(net.places(NCNN_FUSION)),
        "operators": len(operators),
        **_seconds("compile", start, compiled),
        **_seconds("enumerate", compiled, end),
        "paper_cpu_min": PAPER_MINUTES[name],
    }


def _now() -> dict[str, float]:
    return {"cpu": time.process_time(), "wall": time.perf_counter()}


def _seconds(step: str, start: dict[str, float], end: dict[str, float]) -> dict[str, float]:
    return {f"{step}_{clock}_s": round(end[clock] - start[clock], 2) for clock in start}


def render(rows: list[dict[str, Any]]) -> Table:
    """The rows as a table for a person."""
    table = Table(*COLUMNS, title="Unique operators of the paper's spaces, ncnn's fusion rules")
    for row in rows:
        table.add_row(*("" if row[column] is None else str(row[column]) for column in COLUMNS))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*PAPER_MINUTES, []], help="default: all seven")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in options.networks or PAPER_MINUTES:
        rows.append(measure(name))
        pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(options.csv, index=False)
    Console(width=180).print(render(rows))


if __name__ == "__main__":
    main()
