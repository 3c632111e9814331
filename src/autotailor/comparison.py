"""``compare.csv``: the original network scaled uniformly in width and trained alone, as well as it can be."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pandas as pd
import torch
from torch import nn

from autotailor.compiler.sources import export_module
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, ScaledConfig, ScaledResult, train_scaled
from autotailor.finetuning.evaluation import correctness
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.supernet import SuperNet
from autotailor.profiling import DeviceConfig, convert, measure_networks
from autotailor.sections import read_section
from autotailor.sensitivity import accuracy

COLUMNS = (
    "name",
    "width",
    "seed",
    "latency_ms_measured",
    "accuracy_measured",
    "accuracy_standard_error",
    "images",
    "learning_rate",
)


class ComparisonError(AutoTailorError):
    """The original network cannot be scaled."""


@dataclass(frozen=True)
class CompareConfig:
    """Section ``compare``.

    Attributes:
        widths: factors of all channel counts.
        seeds: each network is trained once with each.
        lrs: learning rates that are tried for each; the validation set decides.
    """

    widths: tuple[float, ...]
    seeds: tuple[int, ...]
    lrs: tuple[float, ...]

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> CompareConfig:
        """Reads a section of the configuration; raises ComparisonError."""
        return read_section(cls, section, "compare", ComparisonError)


def scalable(source: str) -> Callable[..., nn.Module]:
    """The factory of a source ``module:factory``, which must take ``width`` and ``seed``.

    Raises:
        ComparisonError: the source is something else, or does not take them.
    """
    module, _, name = source.partition(":")
    factory = None if module in ("", "timm") else getattr(importlib.import_module(module), name, None)
    if factory is None or not {"width", "seed"} <= set(inspect.signature(factory).parameters):
        raise ComparisonError(
            f"model.source {source!r} cannot be scaled: expected module:factory whose factory takes width and seed"
        )
    return factory  # type: ignore[no-any-return]


def compare(
    source: str,
    original: SuperNet,
    data: DataSplits,
    config: CompareConfig,
    training: FinetuneConfig,
    *,
    images: int,
    device: DeviceConfig,
    workdir: Path,
) -> pd.DataFrame:
    """Trains the scaled networks and measures them, all interleaved.

    Args:
        source: ``module:factory``.
        original: the SuperNet as compiled; its largest SubNet, the original network, is the teacher.
        data: the splits.
        config: what to compare with.
        training: of the SuperNet; the scaled networks share its loop and its teacher.
        images: that the SuperNet saw, pretraining included; each scaled network sees at least as many.
        device: where latencies are measured.
        workdir: for checkpoints and converted networks.

    Returns:
        One row for each width and seed, see ``COLUMNS``.
    """
    factory = scalable(source)
    teacher = original.build(original.largest())
    results: dict[tuple[float, int], tuple[ScaledResult, nn.Module]] = {}
    for width in config.widths:
        for seed in config.seeds:
            folder = workdir / f"width_{width:g}_seed_{seed}"
            scaled = _scaled_config(training, config, images, seed)

            def make(width: float = width, seed: int = seed) -> nn.Module:
                return factory(num_classes=data.num_classes, width=width, seed=seed)

            result = train_scaled(make, teacher, data, scaled, folder)
            network = make().eval()
            network.load_state_dict(result.state_dict)
            results[width, seed] = result, network
    latencies = _latencies(
        {width: results[width, config.seeds[0]][1] for width in config.widths}, data, device, workdir
    )
    torch.set_num_threads(training.threads)
    rows = []
    for (width, seed), (result, network) in results.items():
        value, error = accuracy(correctness(network, data.test), data.test.groups)
        seen, lr = result.metrics["images"], result.metrics["lr"]
        rows.append((f"width {width:g}", width, seed, latencies[width], value, error, seen, lr))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _scaled_config(training: FinetuneConfig, config: CompareConfig, images: int, seed: int) -> ScaledConfig:
    """The SuperNet's training, for one network."""
    shared = ("batch_size", "optimizer", "warmup", "weight_decay", "label_smoothing", "gradient_norm", "threads")
    values = {key: getattr(training, key) for key in (*shared, "distillation", "checkpoint_seconds")}
    return ScaledConfig(epochs=0, images=images, seed=seed, lrs=config.lrs, **values)


def _latencies(
    networks: Mapping[float, nn.Module], data: DataSplits, device: DeviceConfig, workdir: Path
) -> dict[float, float]:
    """Latency (ms) of one network for each width."""
    converted = {}
    for width, network in networks.items():
        folder = workdir / f"width_{width:g}"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(export_module(network, data.resolution), str(folder / "model.onnx"))
        convert(folder / "model.onnx", folder, device)
        converted[str(width)] = (folder, (1, 3, data.resolution, data.resolution))
    rows = measure_networks(converted, device, seconds_each=1.0)
    return {float(row.key): row.latency_ms for row in rows}
