"""Trainings of ``sampling.py``: one pretrained network for each seed, one SuperNet for each variant and seed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import autotailor
from autotailor import artifacts, config, data, finetuning
from autotailor.compiler.sources.network import create_network
from autotailor.data.splits import DataSplits
from autotailor.finetuning import sampling
from autotailor.finetuning.sampling.strategy import stages_of
from autotailor.ir.space.subnet import stack
from autotailor.ir.supernet import SuperNet
from sampled.variants import VARIANTS

CONF = Path(__file__).parents[2] / "conf"
SILENT = "finetune.panel.every=0"  # trainings of different length would measure different numbers of panels
Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One variant of one model and seed, with its folder."""

    directory: Path
    model: str
    variant: str
    seed: int
    overrides: tuple[str, ...]
    subnets: int  # SubNets of the panel that are evaluated

    @property
    def of_seed(self) -> Path:
        """Folder of what all variants of this model and seed share."""
        return self.directory / self.model / f"seed_{self.seed}"

    @property
    def folder(self) -> Path:
        """Folder of this variant's files."""
        return self.of_seed / self.variant.replace(" ", "_").replace(":", "_")

    @property
    def result(self) -> Path:
        """File of the finished row."""
        return self.folder / f"result_{self.subnets}.json"

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The composed configuration."""
        chosen = ["recipe=default", f"seed={self.seed}", *VARIANTS[self.variant], SILENT, *self.overrides]
        return config.compose(CONF, self.model, "host", chosen)

    @cached_property
    def space(self) -> dict[str, Any]:
        """Section of the space that the model has without the variant."""
        composed = config.compose(CONF, self.model, "host", ["recipe=default", f"seed={self.seed}", *self.overrides])
        section: dict[str, Any] = composed["model"]["space"]
        return section

    @cached_property
    def data(self) -> DataSplits:
        """The splits of this seed."""
        return data.load(self.configuration["data"])

    @property
    def finetune(self) -> finetuning.FinetuneConfig:
        """Parameters of the training."""
        return finetuning.FinetuneConfig.from_section(self.configuration["finetune"])


def finished(path: Path) -> Row | None:
    """A result that an earlier call has written; None where there is none."""
    if not path.is_file():
        return None
    return {key: value for key, value in artifacts.read_json(path).items() if key != "schema_version"}


def train(run: Run) -> tuple[SuperNet, Row]:
    """The trained SuperNet, and what its training cost.

    The costs are steps, passes, ``mac_passes`` (passes weighted by MACs over those of the largest SubNet), seconds and
    seconds of the processor. A training that was interrupted has no seconds.
    """
    file, costs = run.folder / "supernet.pt", run.folder / "costs.json"
    run.folder.mkdir(parents=True, exist_ok=True)
    if not (file.is_file() and costs.is_file()):
        original = compiled(run, run.configuration["model"]["space"])
        fresh = not (run.folder / "finetune.ckpt").is_file()
        start, processor = time.perf_counter(), time.process_time()
        result = finetuning.finetune(original, run.data, run.finetune, run.folder)
        seconds = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - processor}
        result.net.save(file)
        said = passes(run.finetune, run.data, original) | (seconds if fresh else dict.fromkeys(seconds, float("nan")))
        artifacts.write_json(costs, said)
    found = finished(costs)
    assert found is not None
    return autotailor.load(file), found


def compiled(run: Run, space: dict[str, Any]) -> SuperNet:
    """The network with a space, and with the pretrained weights that all variants of this seed share."""
    model, file = run.configuration["model"], run.of_seed / "pretrained.pt"
    if not file.is_file():
        network = create_network(model["source"], num_classes=model["num_classes"])
        parameters = finetuning.PretrainConfig.from_section(model["pretrain"])
        result = finetuning.pretrain(network, run.data, parameters, run.of_seed)
        with artifacts.atomic(file) as path:
            torch.save(result.state_dict, path)
    return autotailor.compile(
        model["source"],
        space,
        name=model["name"],
        resolution=model["resolution"],
        weights=str(file),
        num_classes=model["num_classes"],
    )


def passes(parameters: finetuning.FinetuneConfig, splits: DataSplits, net: SuperNet) -> Row:
    """Steps and passes of a training; the SubNets of each step are drawn once more, as the training loop draws them."""
    macs = net.macs()
    stages = stages_of(net.space, net.stages)
    strategy = sampling.create(
        parameters.strategy, net.space, stages, parameters.subnets, parameters.sampling, net.macs
    )
    steps = parameters.epochs * splits.train.num_batches(parameters.batch_size)
    drawn = []
    for number in range(steps):
        random = np.random.default_rng([parameters.seed, number])
        random.integers(2**62)  # the loop seeds PyTorch with this number before it draws
        drawn += strategy.draw(number / steps, random)
    share = macs.predict(stack(drawn)) / macs.predict(net.largest().to_array())[0]
    return {"steps": steps, "passes": len(drawn), "mac_passes": float(share.sum())}
