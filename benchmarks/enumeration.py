"""Unique operators of the paper's seven spaces: how many there are, and how long it takes to list them.

    OMP_NUM_THREADS=1 python benchmarks/enumeration.py            # all seven
    OMP_NUM_THREADS=1 python benchmarks/enumeration.py resnet50 levit --csv enumeration.csv

Each network is compiled with the space of ``conf/model`` from its ONNX form in memory; the operators are those of
ncnn's fusion rules. CPU seconds of one process on one core stand beside the CPU minutes of the paper's Table 2.
ResNet50 has 3,802 of them: 3,655, and 147 activations behind residual sums, which ncnn runs by themselves.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

import autotailor
from autotailor import config
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.compiler.sources import create_network, export_module
from autotailor.enumeration import enumerate_operators
from autotailor.profiling.runtimes.ncnn_fusion import NCNN_FUSION

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
    "enumerate_cpu_s",
    "paper_cpu_min",
)


def measure(name: str) -> dict[str, Any]:
    """Compiles one network and lists its operators; a row of the table."""
    model = config.compose(CONF, name, "host")["model"]
    onnx_model = export_module(create_network(model["source"], pretrained=False), model["resolution"])
    start = time.process_time()
    net = autotailor.SuperNet(parse(normalise(onnx_model), name), model["space"])
    variants = net.space.num_variants
    compiled = time.process_time()
    operators = enumerate_operators(net, NCNN_FUSION)
    end = time.process_time()
    return {
        "network": name,
        "modifications": net.space.num_modifications,
        "variants": f"{variants:.4e}",
        "places": len(net.places(NCNN_FUSION)),
        "operators": len(operators),
        "compile_cpu_s": round(compiled - start, 2),
        "enumerate_cpu_s": round(end - compiled, 2),
        "paper_cpu_min": PAPER_MINUTES[name],
    }


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
    Console(width=140).print(render(rows))


if __name__ == "__main__":
    main()
