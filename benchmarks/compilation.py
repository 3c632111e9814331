"""Measures what ``finetune.compile`` and ``polish.compile`` save: networks with and without ``torch.compile``.

    OMP_NUM_THREADS=1 python benchmarks/compilation.py --threads 1 --clock cpu

The teacher is the largest SubNet, in evaluation and without gradients; the student is the smallest one: forward, loss
and backward. Both are modules as the rule ``polish`` trains them. Passes with and without compilation take turns in one
process. ``ratio`` is the median over rounds of (compiled) / (not compiled), with quartiles; ``first`` the seconds of
the first compiled pass, which compiles; ``pays`` the passes after which these are saved again; ``difference`` the
largest one between logits, over their largest. Prints the table and writes ``compilation.csv`` beside this file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from plain import draw
from rich.console import Console
from rich.table import Table
from torch import nn

import autotailor
from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.compiler.sources.network import create_network
from autotailor.compute.compilation import compiled
from autotailor.compute.placement import place
from autotailor.ir.supernet import SuperNet

NETWORKS = ("timm:resnet50", "timm:mobilenetv2_100", "timm:convnext_tiny", "timm:vit_small_patch16_224")
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
FIRST = 1
"""Rounds that are not counted."""


def passes(net: SuperNet, who: str, options: argparse.Namespace) -> tuple[nn.Module, torch.Tensor, Callable[..., None]]:
    """A module, its images, and what one of its passes is."""
    subnet = net.largest() if who == "teacher" else net.smallest()
    device = torch.device(options.device)
    module = place(net.build(subnet, logits=True), device).train(who == "student")
    generator = torch.Generator().manual_seed(1)
    side = options.side or resolution_of(subnet) or 224
    images = torch.randn(options.batch, 3, side, side, generator=generator).to(device)
    labels = torch.randint(0, 1000, (options.batch,), generator=generator).to(device)

    def teach(network: nn.Module) -> None:
        with torch.no_grad():
            network(images)

    def learn(network: nn.Module) -> None:
        module.zero_grad(set_to_none=True)
        F.cross_entropy(network(images), labels).backward()

    return module, images, teach if who == "teacher" else learn


def compare(net: SuperNet, who: str, options: argparse.Namespace) -> dict[str, float]:
    """One row of the table, without names."""
    module, images, one_pass = passes(net, who, options)
    torch.compiler.reset()
    fast = compiled(module)
    start = time.perf_counter()
    one_pass(fast)
    first = time.perf_counter() - start
    with torch.no_grad():
        expected = module(images)
        difference = float((fast(images) - expected).abs().max() / expected.abs().max())
    seconds: dict[nn.Module, list[float]] = {module: [], fast: []}
    for turn in range(FIRST + options.rounds):
        for network in list(seconds)[:: 1 if turn % 2 else -1]:
            seconds[network].append(timed(lambda network=network: one_pass(network), options))
    plain, quick = (np.array(seconds[network][FIRST:]) for network in (module, fast))
    low, middle, high = np.percentile(quick / plain, [25, 50, 75])
    saved = float(np.median(plain) - np.median(quick))
    return {
        "seconds": float(np.median(plain)),
        "ratio": middle,
        "ratio_low": low,
        "ratio_high": high,
        "first": first,
        "pays": first / saved if saved > 0 else np.inf,
        "difference": difference,
    }


def timed(action: Callable[[], None], options: argparse.Namespace) -> float:
    """Seconds of an action, by the clock that is asked for."""
    clock = CLOCKS[options.clock]
    start = clock()
    action()
    if options.device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


def measure(options: argparse.Namespace) -> pd.DataFrame:
    """Two rows for each network."""
    rows = []
    for source in options.networks:
        net = autotailor.compile(draw(create_network(source, pretrained=False).eval()))
        for who in ("teacher", "student"):
            named = {"network": source, "who": who, "batch": options.batch, "device": options.device}
            rows.append(named | compare(net, who, options))
            show(pd.DataFrame(rows[-1:]))
    return pd.DataFrame(rows)


def show(frame: pd.DataFrame) -> None:
    """Prints the ratios."""
    table = Table("network", "who", "seconds", "compiled", "first pass (s)", "pays after", "difference")
    for row in frame.to_dict("records"):
        span = f"{row['ratio']:.2f} ({row['ratio_low']:.2f}-{row['ratio_high']:.2f})"
        cells = [f"{row['seconds']:.3f}", span, f"{row['first']:.0f}", f"{row['pays']:.0f}", f"{row['difference']:.0e}"]
        table.add_row(row["network"], row["who"], *cells)
    Console(width=130).print(table)


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, default=0, help="of the images in pixels; 0: that of the SubNet")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: on a machine that others use")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    with deterministic(options.threads):
        frame = measure(options)
    show(frame)
    frame.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
