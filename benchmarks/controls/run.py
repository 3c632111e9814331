"""One model and seed of ``fronts.py``: its configuration, data, networks, and what the workflow made of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from pipeline import ROOT, snakemake
from torch import nn

import autotailor
from autotailor import artifacts, config, data, finetuning, profiling
from autotailor.compiler.sources.network import create_network
from autotailor.data.splits import DataSplits
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.joint import config_before_race
from autotailor.finetuning.polishing import PolishConfig
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.metric import Metric
from autotailor.ir.supernet import SuperNet

DEVICE = "host"


@dataclass(frozen=True)
class Run:
    """One model and seed.

    Attributes:
        directory: of all runs.
        model: a file of ``conf/model`` with ``weights: pretrain``.
        seed: of everything random.
        overrides: ``KEY=VALUE`` of the configuration.
        lut: LUT of the model; None lets MACs stand for latency.
    """

    directory: Path
    model: str
    seed: int
    overrides: tuple[str, ...] = ()
    lut: Path | None = None

    @property
    def folder(self) -> Path:
        """Folder of this model and seed."""
        return self.directory / self.model / f"seed_{self.seed}"

    @property
    def parts(self) -> Path:
        """Folder of the finished trainings."""
        return self.folder / "parts"

    @property
    def results(self) -> Path:
        """What the workflow makes."""
        return self.folder / "results" / self.model

    def prepare(self) -> None:
        """Trains the original network and the SuperNet and measures sensitivities, where this is not done yet.

        Raises:
            ValueError: the folder holds results of another configuration or of another LUT, or the network's weights
                do not come from the workflow.
        """
        if self.configuration["model"]["weights"] != "pretrain":
            raise ValueError(f"{self.model}: the controls are trained from scratch; choose a model with pretrain")
        self._check_settings()
        overrides = ["recipe=default", f"seed={self.seed}", *self.overrides]
        target = self.results / "sensitivity.csv"
        if not target.exists():  # a checkout that has changed meanwhile does not train everything anew
            snakemake(self.folder, self.model, DEVICE, overrides, [str(target.relative_to(self.folder))])
        if self.lut is not None and not self._table.exists():
            shutil.copy(self.lut, self._table)

    def _check_settings(self) -> None:
        """Refuses a folder with parts of other settings; writes the settings where the folder is new."""
        path = self.folder / "settings.json"
        now = {"overrides": list(self.overrides), "cost": self.cost_name}
        if self.lut is not None:
            now["latencies"] = artifacts.file_digest(self.lut)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            artifacts.write_json(path, now)
        before = {key: value for key, value in artifacts.read_json(path).items() if key != "schema_version"}
        if before != now:
            raise ValueError(f"{self.folder} holds results of other settings ({before}); choose another --directory")

    @property
    def _table(self) -> Path:
        return self.folder / "lut.csv"

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The composed configuration."""
        return config.compose(
            ROOT / "conf", self.model, DEVICE, ["recipe=default", f"seed={self.seed}", *self.overrides]
        )

    @cached_property
    def data(self) -> DataSplits:
        """The splits of this seed."""
        return data.load(self.configuration["data"])

    @cached_property
    def finetune(self) -> finetuning.FinetuneConfig:
        """Parameters of the SuperNet's training."""
        return finetuning.FinetuneConfig.from_section(self.configuration["finetune"])

    @cached_property
    def polish(self) -> PolishConfig:
        """Parameters of polishing."""
        return PolishConfig.from_section(self.configuration["polish"])

    @cached_property
    def joint(self) -> finetuning.FinetuneConfig | None:
        """Parameters of the joint training before polishing; None where there is none."""
        return config_before_race(self.configuration["polish"], self.configuration["finetune"])

    @cached_property
    def net(self) -> SuperNet:
        """The trained SuperNet."""
        return autotailor.load(self.results / "supernet.pt")

    @cached_property
    def compiled(self) -> SuperNet:
        """The SuperNet before its training."""
        return autotailor.load(self.results / "compiled.pt")

    @cached_property
    def teacher(self) -> Teacher:
        """The largest SubNet, which teaches all other networks."""
        return Teacher.largest_of(self.net, torch.device("cpu"), "the largest SubNet")

    @cached_property
    def untrained(self) -> SuperNet:
        """The SuperNet with the factory's initial weights."""
        model = self.configuration["model"]
        return autotailor.compile(
            model["source"],
            model["space"],
            name=model["name"],
            resolution=model["resolution"],
            num_classes=model["num_classes"],
        )

    def original(self) -> nn.Module:
        """A new copy of the original network with its trained weights."""
        model = self.configuration["model"]
        network = create_network(model["source"], num_classes=model["num_classes"])
        network.load_state_dict(torch.load(self.results / "pretrained.pt", weights_only=True))
        return network.eval()

    @property
    def pretrain_images(self) -> int:
        """Images that the original network saw."""
        return int(artifacts.read_json(self.results / "pretrain.json")["images"])

    @property
    def finetune_images(self) -> int:
        """Images that the SuperNet saw after pretraining; a step shows them to several SubNets."""
        return int(artifacts.read_json(self.results / "finetune.json")["images"])

    @property
    def joint_images(self) -> int:
        """Images of the joint training before polishing, one for all budgets; a step shows them to several SubNets."""
        return 0 if self.joint is None else self.joint.epochs * self.finetune_images // self.finetune.epochs

    @property
    def cost_name(self) -> str:
        """What budgets are shares of: ``latency`` or ``macs``."""
        return "macs" if self.lut is None else "latency"

    @cached_property
    def latencies(self) -> dict[str, float] | None:
        """Milliseconds by id of the operator; None without a LUT."""
        return None if self.lut is None else profiling.LUT.read(self._table).latencies()

    @cached_property
    def device(self) -> profiling.DeviceConfig:
        """On which latencies are measured."""
        return profiling.DeviceConfig.from_section(self.configuration["device"])

    @cached_property
    def fusion(self) -> FusionRules:
        """What the device's runtime fuses."""
        return profiling.fusion_rules(self.device)

    @cached_property
    def cost(self) -> Metric:
        """Latency by the LUT, or MACs."""
        return self.net.macs() if self.latencies is None else self.net.latency(self.latencies, self.fusion)
