"""Measures what a pool of SubNets takes on disk, against its largest member alone.

    OMP_NUM_THREADS=1 python benchmarks/pool_size.py                          # ResNet50's space, 32 members
    OMP_NUM_THREADS=1 python benchmarks/pool_size.py vit_digits --members 16 --precision fp16
    OMP_NUM_THREADS=1 python benchmarks/pool_size.py resnet50 --keep pools    # leaves pools/resnet50

Weights are random, because their values do not change the size: every member has statistics of its own, calibrated on
random images. Accuracies are invented: they grow with the logarithm of MACs. Members are those that the rule ``pool``
would choose from a front of random SubNets, with MACs for the latency. With ``--largest`` the front ends in the
unmodified network, as fronts of real runs do; else in the largest SubNet of the sample. Every member is compared with
the SuperNet before it counts.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import autotailor
from autotailor import config
from autotailor.accuracy import CalibrationConfig
from autotailor.compiler.sources.network import create_network
from autotailor.data.splits import DataSplits, TensorEvaluationSet
from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.pool.making import exporter
from autotailor.pool.members import choose_members
from autotailor.pool.writing import Facts, Origin, write_pool
from autotailor.search.front import non_dominated

CONF = Path(__file__).parents[1] / "conf"
SAMPLE = 500
IMAGES = 4
SLOWDOWN = 4.0
LARGEST, PER_FACTOR_E = 70.0, 5.0
"""Invented accuracy of the largest member, percent, and points for each factor e of MACs."""


class RandomImages:
    """A training stream of the same random images in every epoch."""

    def __init__(self, side: int) -> None:
        self.images = torch.randn(IMAGES, 3, side, side, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return IMAGES

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Any:
        yield self.images, torch.zeros(IMAGES, dtype=torch.int64)


def random_data(side: int) -> DataSplits:
    """Splits of random images, which calibrate and are compared."""
    stream = RandomImages(side)
    held = TensorEvaluationSet(stream.images[:1], np.zeros(1), np.zeros(1))
    plain = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    return DataSplits("random", 2, side, stream, held, held, *plain, "random")  # type: ignore[arg-type]


def compile_network(name: str) -> autotailor.SuperNet:
    """A SuperNet of ``conf/model`` with random weights and sorted channels."""
    torch.manual_seed(0)
    model = config.compose(CONF, name, "host")["model"]
    network = create_network(model["source"], pretrained=False).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # timm begins with gains of zero, and zeros take no room in a pool
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
    net = autotailor.compile(network, model["space"], name=name, resolution=model["resolution"])
    return net.sort_channels()


def members_of(net: autotailor.SuperNet, count: int, *, largest: bool) -> tuple[list[SubNet], list[float]]:
    """Members of a front of random SubNets, with their millions of MACs."""
    drawn = [net.smallest(), *sample_distinct(net.space, SAMPLE, np.random.default_rng(0))]
    drawn += [net.largest()] if largest else []
    macs = net.macs().predict(stack(drawn))
    front = non_dominated(macs, np.log(macs))
    chosen = front[choose_members(macs[front], np.log(macs[front]), count, SLOWDOWN).rows]
    return [drawn[row] for row in chosen], [float(macs[row]) for row in chosen]


def measure(name: str, count: int, precision: str, *, largest: bool, keep: Path | None = None) -> dict[str, Any]:
    """One row of the table; the pool is kept in a folder where one is given."""
    net = compile_network(name)
    side = net.input_shape[-1]
    subnets, macs = members_of(net, count, largest=largest)
    with tempfile.TemporaryDirectory(prefix="autotailor.pool.") as folder:
        export = exporter(
            net, net.module().eval(), random_data(side), CalibrationConfig(IMAGES, IMAGES), Path(folder) / "members"
        )
        accuracy = LARGEST + PER_FACTOR_E * np.log(np.array(macs) / max(macs))
        facts = [
            Facts(float(a), None, False, m, None, None, None, (m, 0.0, 0.0), 1.0, None)
            for a, m in zip(accuracy, macs, strict=True)
        ]
        exported = [export(subnet) for subnet in subnets]
        tolerance = 1e-4 if precision == "fp32" else 1e-1
        origin = Origin(name, "none", 1, {}, precision, tolerance)
        document = write_pool(Path(folder) / "pool", net, list(zip(exported, facts, strict=True)), origin)
        sizes = {path.name: path.stat().st_size for path in (Path(folder) / "pool").rglob("*") if path.is_file()}
        if keep is not None:
            shutil.copytree(Path(folder) / "pool", keep / name)
        alone = [each.weights.stat().st_size for each in exported]
    texts = sum(size for file, size in sizes.items() if not file.endswith(".bin"))
    errors = [each["verification"]["max_relative_error"] for each in document["members"]]
    return {
        "network": name,
        "members": len(subnets),
        "precision": precision,
        "front_with_largest": largest,
        "weights_mb": round(sizes["weights.bin"] / 1e6, 3),
        "norms_mb": round(sizes["norms.bin"] / 1e6, 3),
        "texts_mb": round(texts / 1e6, 3),
        "pool_mb": round(sum(sizes.values()) / 1e6, 3),
        "largest_member_mb": round(max(alone) / 1e6, 3),
        "all_members_mb": round(sum(alone) / 1e6, 3),
        "pool_over_largest": round(sum(sizes.values()) / max(alone), 4),
        "max_relative_error": float(f"{max(errors):.1e}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="*", default=["resnet50"], help="files of conf/model")
    parser.add_argument("--members", type=int, default=32)
    parser.add_argument("--precision", choices=["fp32", "fp16"], default="fp32")
    parser.add_argument("--largest", action="store_true", help="the front ends in the unmodified network")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keeps each pool in a folder of the network's name")
    parser.add_argument("--csv", type=Path, help="adds the rows to a file")
    asked = parser.parse_args()
    rows = [
        measure(name, asked.members, asked.precision, largest=asked.largest, keep=asked.keep) for name in asked.networks
    ]
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    if asked.csv:
        table.to_csv(asked.csv, mode="a", header=not asked.csv.exists(), index=False)


if __name__ == "__main__":
    main()
