"""``compare.csv``: the original network, scaled uniformly in width and trained alone with the best learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import pandas as pd

from autotailor.accuracy.evaluation import correctness
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, ScaledConfig, train_scaled
from autotailor.finetuning.initialisation import initialise
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.execution.uniform import scale_uniformly
from autotailor.ir.graph import Graph
from autotailor.ir.supernet import SuperNet
from autotailor.profiling import DeviceConfig, convert, measure_networks
from autotailor.sections import read_section
from autotailor.statistics import accuracy

# The column subnets holds the names of the exported SubNets that a network is compared with, separated by spaces.
COLUMNS = (
    "name",
    "subnets",
    "width",
    "seed",
    "latency_ms_measured",
    "accuracy_measured",
    "accuracy_standard_error",
    "images",
    "learning_rate",
)


SAME = 1.05  # latencies whose ratio is at most this count as equal


class ComparisonError(AutoTailorError):
    """The section ``compare`` is invalid."""


@dataclass(frozen=True)
class CompareConfig:
    """Section ``compare``.

    Attributes:
        names: exported SubNets to compare with, for instance ``budget_02``; empty for all but the largest. Each SubNet
            is compared with a network of ``widths`` that is not faster, see ``matched_widths``.
        widths: factors of all channel counts to choose from.
        seeds: each network is trained once with each seed.
        lrs: learning rates that are tried for each network; the accuracy on the validation set decides.
    """

    names: tuple[str, ...]
    widths: tuple[float, ...]
    seeds: tuple[int, ...]
    lrs: tuple[float, ...]

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> CompareConfig:
        """Reads a section of the configuration; raises ComparisonError for unknown or missing keys."""
        return read_section(cls, section, "compare", ComparisonError)


def compare(
    original: SuperNet,
    data: DataSplits,
    config: CompareConfig,
    training: FinetuneConfig,
    *,
    summary: pd.DataFrame,
    images: int,
    device: DeviceConfig,
    workdir: Path,
) -> pd.DataFrame:
    """Scales the network to the latencies of exported SubNets, trains it alone, and measures it.

    Args:
        original: the SuperNet as compiled; its largest SubNet, the original network, is the teacher.
        data: the splits.
        config: section ``compare`` of the configuration.
        training: of the SuperNet; the scaled networks are trained with the same parameters and the same teacher.
        summary: ``summary.csv``: the exported SubNets with their measured latency.
        images: number of images that the SuperNet saw in pretraining and finetuning; each scaled network sees at least
            as many.
        device: on which latencies are measured.
        workdir: folder of checkpoints and converted networks.

    Returns:
        One row for each width and seed, with the columns of ``COLUMNS``.

    Raises:
        ComparisonError: an exported SubNet of ``config.names`` does not exist.
    """
    divisor = int((original.space_config or {}).get("divisor", 8))
    graphs = {width: scale_uniformly(original.graph, width, divisor) for width in config.widths}
    latencies = _latencies(graphs, device, workdir)
    teacher = original.build(original.largest(), logits=True)
    rows = []
    matches = matched_widths(summary, latencies, config.names)
    for width in sorted(set(matches.values())):
        names = " ".join(name for name, matched in matches.items() if matched == width)
        for seed in config.seeds:
            scaled = _scaled_config(training, config, images, seed)
            graph = initialise(graphs[width], seed)
            folder = workdir / f"width_{width:g}_seed_{seed}"
            factory = partial(GraphModule, graph, logits=True)
            result = train_scaled(factory, teacher, data, scaled, folder, original.head.independent)
            network = factory()
            network.load_state_dict(result.state_dict)
            value, error = accuracy(correctness(network.eval(), data.test), data.test.groups)
            seen, lr = result.metrics["images"], result.metrics["lr"]
            rows.append((f"width {width:g}", names, width, seed, latencies[width], value, error, seen, lr))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matched_widths(summary: pd.DataFrame, latencies: Mapping[float, float], names: Sequence[str]) -> dict[str, float]:
    """Maps the name of each SubNet to the width of the scaled network at its latency.

    Where no width has the same latency, the choice favours the scaled network. Of the networks that are not faster than
    the SubNet, those within ``SAME`` of the fastest count as equally fast, because narrow networks hardly get faster by
    getting narrower, and the widest of them is taken. Where all networks are faster than the SubNet, the widest is
    taken.

    Raises:
        ComparisonError: an exported SubNet of a name does not exist.
    """
    table = summary.set_index("name")
    wanted = tuple(names) or tuple(n for n in table.index if n not in ("largest", "original"))
    unknown = sorted(set(wanted) - set(table.index))
    if unknown:
        raise ComparisonError(f"compare.names: {unknown} are not exported; exported are {sorted(table.index)}")
    return {name: _match(latencies, float(table.loc[name, "latency_ms_measured"])) for name in wanted}  # type: ignore[arg-type]


def _match(latencies: Mapping[float, float], target: float) -> float:
    slower = [latency for latency in latencies.values() if latency >= target]
    limit = SAME * min(slower) if slower else max(latencies.values())
    return max(width for width, latency in latencies.items() if min(target, limit) <= latency <= limit)


def _scaled_config(training: FinetuneConfig, config: CompareConfig, images: int, seed: int) -> ScaledConfig:
    """The parameters of the SuperNet's training, for one scaled network."""
    shared = (
        "batch_size",
        "optimizer",
        "warmup",
        "weight_decay",
        "label_smoothing",
        "gradient_norm",
        "threads",
        "precision",
        "accelerator",
        "micro_batch",
        "augmentation",
    )
    values = {key: getattr(training, key) for key in (*shared, "distillation", "checkpoint_seconds")}
    return ScaledConfig(epochs=0, images=images, seed=seed, lrs=config.lrs, **values)


def _latencies(graphs: Mapping[float, Graph], device: DeviceConfig, workdir: Path) -> dict[float, float]:
    """Latency (ms) of each width, all measured in interleaved rounds."""
    converted = {}
    for width, graph in graphs.items():
        folder = workdir / f"width_{width:g}"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(to_onnx(graph), str(folder / "model.onnx"))
        convert(folder / "model.onnx", folder, device)
        converted[str(width)] = (folder, graph.shapes[graph.input])
    return {float(row.key): row.latency_ms for row in measure_networks(converted, device, seconds_each=1.0)}
