"""Compares training steps of a SuperNet, one SubNet active, with those of the plain network of that architecture.

    OMP_NUM_THREADS=1 python benchmarks/supernet_training.py --threads 1 --clock cpu --optimizer adamw_fused

The plain network of the largest SubNet is the network itself. That of the smallest SubNet is the network's own code
with sliced weights and without the removed blocks (``plain.py``). ``standalone`` is the sliced graph as autotailor runs
it by itself (``SuperNet.build``), which polishing trains.

Steps of the three take turns in one process. Each ratio is the median over rounds of (SuperNet) / (plain network), with
quartiles: of forward, loss and backward (``gradients``), of these and of giving the optimizer its gradients
(``added``), and of all with the optimizer (``step``). The last two come once a step, however many SubNets the step
trains. Muon takes the gradients of matrices as they are, and moves the regions that the SubNet takes; other optimizers,
and vectors, get gradients of whole weights. Memory is the largest sum of PyTorch's
tensors during one step, weights, gradients and moments included; ``held`` are the weights and moments of what the
SubNet leaves out, as a share of the plain network's memory. Prints the table and writes ``supernet_training.csv``
beside this file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from plain import draw, plain_module
from rich.console import Console
from rich.table import Table
from torch import nn

import autotailor
from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.compiler.sources.network import create_network
from autotailor.finetuning.training.optimizers import make_optimizer, names
from autotailor.finetuning.training.steps import with_gradients
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

NETWORKS = ("timm:resnet50", "timm:mobilenetv2_100", "timm:convnext_tiny", "timm:vit_small_patch16_224")
FIRST = 2
"""Rounds that are not counted."""
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
PHASES = ("gradients", "added", "step")
PLAIN, STANDALONE, SUPERNET = "plain", "standalone", "supernet"


@dataclass
class Trained:
    """A module that is trained."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    images: torch.Tensor
    labels: torch.Tensor
    clock: Callable[[], float]

    def step(self) -> tuple[float, float, float]:
        """Makes one step; returns seconds until the gradients are known, until the optimizer has them, and of all."""
        start = self._now()
        self.module.zero_grad(set_to_none=True)
        if isinstance(self.module, ElasticModule):
            with self.module.slices() as slices:
                gradients = slices.gradients(self._loss())
            known = self._now()
            self.module.add_gradients(gradients)
            del gradients
        else:
            self._loss().backward()
            known = self._now()
        with with_gradients(self.optimizer, self.module):
            given = self._now()
            self.optimizer.step()
        return known - start, given - start, self._now() - start

    def _loss(self) -> torch.Tensor:
        return F.cross_entropy(self.module(self.images), self.labels)

    def _now(self) -> float:
        if self.images.is_cuda:
            torch.cuda.synchronize()
        return self.clock()

    def static_bytes(self) -> int:
        """Bytes of weights, statistics and moments."""
        moments = [v for state in self.optimizer.state.values() for v in state.values() if torch.is_tensor(v)]
        held = [*self.module.parameters(), *self.module.buffers(), *moments]
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    def peak_bytes(self) -> int:
        """Most bytes of tensors at once during a step, its first optimizer step not counted."""
        self.module.zero_grad(set_to_none=True)
        if self.images.is_cuda:
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            self.step()
            return self.static_bytes() + torch.cuda.max_memory_allocated() - before
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            self.step()
        events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        sizes = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]
        return self.static_bytes() + int(np.cumsum(sizes).max())


def trained(module: nn.Module, subnet: SubNet, options: argparse.Namespace) -> Trained:
    """A module in training, with pictures of the SubNet's resolution."""
    module = module.train().to(options.device, memory_format=torch.channels_last)
    generator = torch.Generator().manual_seed(1)
    side = resolution_of(subnet) or 224
    images = torch.randn(options.batch, 3, side, side, generator=generator)
    images = images.to(options.device, memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (options.batch,), generator=generator).to(options.device)
    optimizer = make_optimizer(module, options.optimizer, lr=1e-5, weight_decay=0.01)
    return Trained(module, optimizer, images, labels, CLOCKS[options.clock])


def subjects(network: nn.Module, net: SuperNet, subnet: SubNet, options: argparse.Namespace) -> dict[str, Trained]:
    """The three that are compared."""
    modules = {
        PLAIN: plain_module(network, net, subnet),
        STANDALONE: net.build(subnet, logits=True),
        SUPERNET: net.module(logits=True).activate(subnet),
    }
    return {name: trained(module, subnet, options) for name, module in modules.items()}


def compare(network: nn.Module, net: SuperNet, subnet: SubNet, options: argparse.Namespace) -> dict[str, float]:
    """One row of the table, without names."""
    compared = subjects(network, net, subnet, options)
    seconds: dict[str, list[tuple[float, ...]]] = {name: [] for name in compared}
    for turn in range(FIRST + options.rounds):
        for name in list(compared)[:: 1 if turn % 2 else -1]:
            seconds[name].append(compared[name].step())
    times = {name: np.array(rows[FIRST:]) for name, rows in seconds.items()}
    row: dict[str, float] = {"resolution": compared[PLAIN].images.shape[-1], "rounds": options.rounds}
    for name in (SUPERNET, STANDALONE):
        for column, what in enumerate(PHASES):
            ratios = times[name][:, column] / times[PLAIN][:, column]
            low, middle, high = np.percentile(ratios, [25, 50, 75])
            row |= {f"{name}_{what}": middle, f"{name}_{what}_low": low, f"{name}_{what}_high": high}
    for name in compared:
        row[f"{name}_images_per_second"] = options.batch / float(np.median(times[name][:, -1]))
    peaks = {name: one.peak_bytes() for name, one in compared.items()}
    held = compared[SUPERNET].static_bytes() - compared[PLAIN].static_bytes()
    row |= {f"{name}_memory": peaks[name] / peaks[PLAIN] for name in (SUPERNET, STANDALONE)}
    return row | {"supernet_held": held / peaks[PLAIN]}


def measure(options: argparse.Namespace) -> pd.DataFrame:
    """One row for each network and SubNet."""
    rows = []
    for source in options.networks:
        network = draw(create_network(source, pretrained=False).eval())
        net = autotailor.compile(network)
        for name, subnet in (("largest", net.largest()), ("smallest", net.smallest())):
            if name in options.subnets:
                named = {"network": source, "subnet": name, "batch": options.batch, "optimizer": options.optimizer}
                rows.append(named | compare(network, net, subnet, options))
                show(pd.DataFrame(rows[-1:]))
    return pd.DataFrame(rows)


def show(frame: pd.DataFrame) -> None:
    """Prints the ratios."""
    table = Table("network", "SubNet", *PHASES, "standalone", "memory", "held", "images/s", "plain images/s")
    for row in frame.to_dict("records"):
        spans = [
            f"{row[key]:.3f} ({row[f'{key}_low']:.3f}-{row[f'{key}_high']:.3f})"
            for key in (*(f"{SUPERNET}_{phase}" for phase in PHASES), f"{STANDALONE}_step")
        ]
        rates = [f"{row[f'{name}_images_per_second']:.2f}" for name in (SUPERNET, PLAIN)]
        table.add_row(
            row["network"],
            row["subnet"],
            *spans,
            f"{row['supernet_memory']:.2f}",
            f"{row['supernet_held']:.2f}",
            *rates,
        )
    Console(width=160).print(table)


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--subnets", nargs="+", default=["largest", "smallest"])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: on a machine that others use")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--optimizer", default="muon", choices=names(), help="of all that are compared")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    with deterministic(options.threads):
        frame = measure(options)
    show(frame)
    frame.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
