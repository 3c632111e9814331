"""Measures how long commands and rules take to start, and compares them with ``import torch`` in the same rounds.

    python benchmarks/startup.py                     # all, medians of five
    python benchmarks/startup.py --runs 9 --csv benchmarks/startup.csv

``inspect`` compiles timm's MobileNetV2 (random weights, 224 pixels) from the ONNX file that PyTorch writes. For a rule,
the imports of its script are timed, with every name that the script uses of the imported modules: a module that is
imported on first use counts, a module that a function imports when it is called does not. ``snakemake -n`` plans a run
of the default model in an empty folder. Each round starts every process once, so that a machine that is slow for a
while is slow for all of them. CPU seconds are those of the process and of its children; other work on the machine
changes them less than wall seconds. ``above torch`` is the median of the differences to ``import torch`` in the same
round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "workflow" / "scripts"
TORCH = "import torch"
COLUMNS = ("what", "wall_s", "cpu_s", "wall_above_torch_s", "cpu_above_torch_s", "cpu_over_torch")

EXPORT = """
import sys, timm, torch
network = timm.create_model("mobilenetv2_100").eval()
torch.onnx.export(network, (torch.zeros(1, 3, 224, 224),), sys.argv[1], dynamo=False, opset_version=17)
"""
IMPORTS = """
import ast, sys
sys.path.insert(0, sys.argv[1])
tree = ast.parse(open(f"{sys.argv[1]}/{sys.argv[2]}.py").read())
used = [(node.value.id, node.attr) for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
tree.body = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
exec(compile(tree, sys.argv[2], "exec"), names := {})
for name, attribute in used:
    if isinstance(names.get(name), type(sys)):
        getattr(names[name], attribute)
"""


def commands(network: Path) -> dict[str, list[str]]:
    """The commands to time, by name; the others are compared with the first one."""
    python = [sys.executable]
    rules = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "stage")
    snakemake = [
        str(Path(sys.executable).with_name("snakemake")),
        "-n",
        "--quiet",
        "--snakefile",
        str(ROOT / "Snakefile"),
    ]
    return {
        TORCH: [*python, "-c", TORCH],
        "--help": [*python, "-m", "autotailor", "--help"],
        "inspect --help": [*python, "-m", "autotailor", "inspect", "--help"],
        "inspect mobilenetv2.onnx": [*python, "-m", "autotailor", "inspect", str(network)],
        "snakemake -n": snakemake,
        **{f"rule {name}": [*python, "-c", IMPORTS, str(SCRIPTS), name] for name in rules},
    }


def measure(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one process with its children.

    Raises:
        subprocess.CalledProcessError: the process failed.
    """
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall, after = time.perf_counter() - start, os.times()
    used = (after.children_user + after.children_system) - (before.children_user + before.children_system)
    return wall, used


def table(times: Mapping[str, Sequence[tuple[float, float]]]) -> list[list[str]]:
    """Rows of ``COLUMNS``: medians over the rounds."""
    rows = []
    for name, rounds in times.items():
        pairs = list(zip(rounds, times[TORCH], strict=True))
        medians = [statistics.median(seconds) for seconds in zip(*rounds, strict=True)]
        above = [statistics.median(own[kind] - torch[kind] for own, torch in pairs) for kind in (0, 1)]
        ratio = statistics.median(own[1] / torch[1] for own, torch in pairs)
        rows.append([name, *(f"{value:.2f}" for value in (*medians, *above, ratio))])
    return rows


def main() -> None:
    """Measures, prints a table in Markdown, and writes it as CSV."""
    parser = argparse.ArgumentParser(description="Startup times of commands and rules.")
    parser.add_argument("--runs", type=int, default=5, help="rounds; the medians are reported (5)")
    parser.add_argument("--csv", type=Path, help="where the table goes too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network = folder / "mobilenetv2.onnx"
        subprocess.run([sys.executable, "-W", "ignore", "-c", EXPORT, str(network)], check=True)
        todo = commands(network)
        times: dict[str, list[tuple[float, float]]] = {what: [] for what in todo}
        for number in range(options.runs + 1):  # the first round fills the file system's cache
            for what, command in todo.items():
                seconds = measure(command, folder)
                if number:
                    times[what].append(seconds)
            print(f"round {number} of {options.runs}", file=sys.stderr, flush=True)
    rows = table(times)
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if options.csv:
        lines = [",".join(COLUMNS), *(",".join(row) for row in rows)]
        options.csv.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
