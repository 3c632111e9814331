"""``compare.csv``: the original network, scaled uniformly in width and trained alone with the best learning rate."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import onnx
import pandas as pd
import torch

from autotailor.accuracy.evaluation import correctness
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, ScaledConfig, train_scaled
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.weight_sharing import teacher_of
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.execution.uniform import initialise, scale_uniformly
from autotailor.ir.graph import Graph
from autotailor.ir.supernet import SuperNet
from autotailor.measurement.config import CompareConfig, ComparisonError
from autotailor.profiling import LUT, DeviceConfig, convert, measure_networks
from autotailor.search import Cost
from autotailor.statistics import accuracy
from autotailor.task.registry import of


def columns(cost: Cost) -> tuple[str, ...]:
    """The columns of ``compare.csv`` where budgets limit a cost.

    The column ``subnets`` holds the names of the exported SubNets that a network is compared with, separated by spaces.
    """
    return (
        "name",
        "subnets",
        "width",
        "seed",
        cost.reached,
        "accuracy_measured",
        "accuracy_standard_error",
        "images",
        "learning_rate",
    )


SAME = 1.05  # latencies or other costs whose ratio is at most this count as equal


def compare(
    original: SuperNet,
    data: DataSplits,
    config: CompareConfig,
    training: FinetuneConfig,
    *,
    summary: pd.DataFrame,
    images: int,
    cost: Cost,
    device: DeviceConfig | None,
    workdir: Path,
    lut: LUT | None = None,
) -> pd.DataFrame:
    """Scales the network to the latencies, or other costs, of exported SubNets, trains it alone, and measures it.

    Args:
        original: the SuperNet as compiled; its largest SubNet is the original network.
        data: the splits.
        config: section ``compare`` of the configuration.
        training: of the SuperNet; the scaled networks are trained with the same parameters and the same teacher, which
            is the original network unless ``training.teacher`` names another one.
        summary: ``summary.csv``: the exported SubNets with their measured latency, or what else budgets limit.
        images: number of images that the SuperNet saw in pretraining and finetuning; each scaled network sees at least
            as many.
        cost: what budgets limit.
        device: on which latencies are measured; None where the graph says the cost.
        workdir: folder of checkpoints and converted networks.
        lut: of the device; its anchor scales latencies to the speed that the machine had then, as those of ``summary``
            are scaled. With None, they are as measured now.

    Returns:
        One row for each width and seed, see ``columns``.

    Raises:
        ComparisonError: an exported SubNet of ``config.names`` does not exist, or was not measured.
    """
    exported = summary.set_index("name")[cost.reached]
    check_measured(exported, config.names, cost)
    divisor = int((original.space_config or {}).get("divisor", 8))
    graphs = {width: scale_uniformly(original.original, width, divisor) for width in config.widths}
    costs = _latencies(graphs, device, lut, workdir) if device is not None else _counts(graphs, cost)
    processor = torch.device("cpu")
    teacher = teacher_of(Teacher.largest_of(original, processor, logits=of(data).logits), data, training, processor)
    rows = []
    matches = matched_widths(exported, costs, config.names)
    for width in sorted(set(matches.values())):
        names = " ".join(name for name, matched in matches.items() if matched == width)
        for seed in config.seeds:
            scaled = _scaled_config(training, config, images, seed)
            graph = initialise(graphs[width], seed)
            folder = workdir / f"width_{width:g}_seed_{seed}"
            factory = partial(GraphModule, graph, logits=of(data).logits)
            result = train_scaled(factory, teacher, data, scaled, folder, original.head.independent)
            network = factory()
            network.load_state_dict(result.state_dict)
            value, error = accuracy(correctness(network.eval(), data.test), data.test.groups)
            seen, lr = result.metrics["images"], result.metrics["lr"]
            rows.append((f"width {width:g}", names, width, seed, costs[width], value, error, seen, lr))
    return pd.DataFrame(rows, columns=list(columns(cost)))


def matched_widths(exported: pd.Series, costs: Mapping[float, float], names: Sequence[str]) -> dict[str, float]:
    """Maps the name of each SubNet to the width of the scaled network at its latency, or other cost.

    Where no width costs the same, the choice favours the scaled network. Of the networks that do not cost less than the
    SubNet, those within ``SAME`` of the cheapest count as equally cheap, because narrow networks hardly get faster by
    getting narrower, and the widest of them is taken. Where all networks cost less than the SubNet, the widest is
    taken.

    Args:
        exported: costs of the exported networks, by name.
        costs: width to the cost of the scaled network.
        names: exported SubNets; empty for all but the largest.

    Raises:
        ComparisonError: an exported SubNet of a name does not exist.
    """
    return {name: _match(costs, float(exported[name])) for name in _wanted(exported, names)}


def check_measured(exported: pd.Series, names: Sequence[str], cost: Cost) -> None:
    """Refuses SubNets without a cost before anything is measured or trained; arguments as of ``matched_widths``.

    Raises:
        ComparisonError: an exported SubNet of a name does not exist, or has no cost in the summary.
    """
    if empty := [name for name in _wanted(exported, names) if math.isnan(exported[name])]:
        raise ComparisonError(
            f"compare: summary.csv has no {cost.reached} for {', '.join(empty)}, because an imported LUT (lut=...) "
            f"stood for the device; leave lut=... out, so that the rule measure measures them"
        )


def _wanted(exported: pd.Series, names: Sequence[str]) -> tuple[str, ...]:
    chosen = tuple(names) or tuple(str(n) for n in exported.index if n not in ("largest", "original"))
    if unknown := sorted(set(chosen) - set(exported.index)):
        raise ComparisonError(f"compare.names: {unknown} are not exported; exported are {sorted(exported.index)}")
    return chosen


def _match(costs: Mapping[float, float], target: float) -> float:
    above = [cost for cost in costs.values() if cost >= target]
    limit = SAME * min(above) if above else max(costs.values())
    return max(width for width, cost in costs.items() if min(target, limit) <= cost <= limit)


def _scaled_config(training: FinetuneConfig, config: CompareConfig, images: int, seed: int) -> ScaledConfig:
    """The parameters of the SuperNet's training, for one scaled network."""
    shared = (
        "batch_size",
        "optimizer",
        "warmup",
        "weight_decay",
        "label_smoothing",
        "gradient_norm",
        "ema",
        "threads",
        "precision",
        "accelerator",
        "micro_batch",
        "augmentation",
    )
    values = {key: getattr(training, key) for key in (*shared, "distillation", "checkpoint_seconds")}
    return ScaledConfig(epochs=0, images=images, seed=seed, lrs=config.lrs, **values)


def _counts(graphs: Mapping[float, Graph], cost: Cost) -> dict[float, float]:
    """What the graph of each width says."""
    assert cost.count is not None
    counted = {}
    for width, graph in graphs.items():
        net = SuperNet.of(graph, {})
        counted[width] = float(cost.count(net).predict(net.largest().to_array())[0])
    return counted


def _latencies(
    graphs: Mapping[float, Graph], device: DeviceConfig, lut: LUT | None, workdir: Path
) -> dict[float, float]:
    """Latency (ms) of each width, all measured in interleaved rounds."""
    converted = {}
    for width, graph in graphs.items():
        folder = workdir / f"width_{width:g}"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(to_onnx(graph), str(folder / "model.onnx"))
        convert(folder / "model.onnx", folder, device)
        converted[str(width)] = (folder, graph.shapes[graph.input])
    measured = measure_networks(converted, device, seconds_each=1.0, lut=lut)
    return {float(row.key): row.latency_ms for row in measured}
