"""Which learning rate suits networks that arrive trained: weight-shared training and polishing at several rates.

    python benchmarks/learning_rates.py --epochs 3 12

No network of the zoo is used: timm's architectures are trained on the digits data as their owners would have done, and
then share their weights in the space that ``inspect`` proposes, at each rate. The two SubNets in the middle of the
parameters of twenty random ones are polished for three epochs at each rate, from the SuperNet of ``--polish-from``.
Accuracies are percent of the validation set; ``first`` is the largest SubNet's after the first epoch. Each finished
training is kept in ``--directory``, so that a run that was killed continues. Writes ``learning_rates.csv`` beside this
file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import timm
import torch
from rich.console import Console
from rich.table import Table

import autotailor
from autotailor import artifacts, config, data, finetuning
from autotailor.accuracy import CalibrationConfig, Calibrator, evaluate
from autotailor.accuracy.evaluation import percent
from autotailor.data.splits import DataSplits
from autotailor.finetuning import polishing
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.ir.supernet import SuperNet

CONF = Path(__file__).parents[1] / "conf"
CLASSES = 10
Row = dict[str, Any]


@dataclass(frozen=True)
class Network:
    """A timm architecture, and how its owner trains it.

    Attributes:
        name: of timm.
        resolution: side of its images, pixels.
        optimizer, lr, epochs: of its training from scratch.
    """

    name: str
    resolution: int
    optimizer: str = "adamw"
    lr: float = 2e-3
    epochs: int = 12


NETWORKS = (
    Network("test_resnet", 32, "sgd", 0.1),
    Network("test_efficientnet", 32, epochs=40),
    Network("dla46_c", 32),
)
RATES = (2.5e-4, 1e-3, 2e-3, 4e-3, 1.6e-2)


@dataclass(frozen=True)
class Subject:
    """A trained network and its data, with the folder of its trainings."""

    network: Network
    directory: Path
    overrides: tuple[str, ...]
    panel: int = 4  # random SubNets that are evaluated after training

    @property
    def folder(self) -> Path:
        """Of the trainings of this network."""
        return self.directory / self.network.name

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The sections ``data``, ``finetune`` and ``polish``."""
        side = f"model.resolution={self.network.resolution}"
        small = ["data.train_images=2048", "data.evaluation_images=720", "finetune.panel.images=720"]
        plain = ["accelerator=cpu", "precision=fp32", "threads=1", "workers=1", "finetune.teacher=null"]
        plain += ["recipe=default", "finetune.weight_decay=0.02"]  # the embedded networks have another one
        return config.compose(CONF, "resnet_digits", "host", [side, *small, *plain, *self.overrides])

    @cached_property
    def data(self) -> DataSplits:
        """Digits of the network's resolution."""
        return data.load(self.configuration["data"])

    @cached_property
    def original(self) -> SuperNet:
        """The trained network with the space that is proposed for it."""
        chosen, path = self.network, self.folder / "pretrained.pt"
        torch.manual_seed(0)
        sized = {"img_size": chosen.resolution} if "vit" in chosen.name else {}
        module = timm.create_model(chosen.name, num_classes=CLASSES, **sized)
        if not path.is_file():
            parameters = finetuning.PretrainConfig(
                epochs=chosen.epochs,
                optimizer=chosen.optimizer,
                lr=chosen.lr,
                warmup=0.1,
                gradient_norm=1.0,
                weight_decay=0.02,
            )
            result = finetuning.pretrain(module, self.data, parameters, self.folder)
            with artifacts.atomic(path) as part:
                torch.save(result.state_dict, part)
        module.load_state_dict(torch.load(path))
        return autotailor.compile(module.eval(), None, name=chosen.name, resolution=chosen.resolution)

    def shared(self, lr: float, epochs: int) -> Row:
        """Weight-shared training at a rate: accuracies of the original network, both ends and the panel."""
        name = f"share_{epochs}_{lr:g}"
        values = {**self.configuration["finetune"], "lr": lr, "epochs": epochs}
        values["panel"] = {**values["panel"], "every": epochs, "subnets": self.panel}
        parameters = finetuning.FinetuneConfig.from_section(values)

        def work() -> Row:
            result = finetuning.finetune(self.original, self.data, parameters, self.folder / name)
            result.net.save(self.folder / f"{name}.pt")
            last = result.history[-1]
            found = {part: last[f"{part}_accuracy"] for part in ("largest", "panel", "smallest")}
            first = {"first": result.history[0]["largest_accuracy"]}  # the largest SubNet after the first epoch
            return {"original": result.metrics["original_validation_accuracy"], **first, **found}

        return self._once(name, work)

    def polished(self, lr: float, start: str) -> Row:
        """Three epochs of polishing at a rate: mean accuracy of two SubNets before and after."""
        values = {**self.configuration["polish"], "lr": lr, "rounds": [{"candidates": 2, "epochs": 3}]}
        parameters = polishing.PolishConfig.from_section(values)
        name = f"polish_{start}_{lr:g}_{parameters.teacher}"

        def work() -> Row:
            net = autotailor.load(self.folder / f"{start}.pt")
            chosen = _middle(net)
            found = inherited_accuracies(net, self.data, chosen)
            inherited = {subnet.id: value for subnet, value in zip(chosen, found, strict=True)}
            _, table = polishing.polish(
                net,
                self.original,
                self.data,
                {"middle": chosen},
                inherited,
                parameters,
                self.folder / name,
            )
            return {"inherited": fmean(inherited.values()), "polished": float(table["accuracy_validation"].mean())}

        return self._once(name, work)

    def _once(self, name: str, work: Callable[[], Row]) -> Row:
        """What an earlier call has written; otherwise the work's result, which is written."""
        path = self.folder / f"{name}.json"
        if not path.is_file():
            artifacts.write_json(path, work())
        return {key: value for key, value in artifacts.read_json(path).items() if key != "schema_version"}


def _middle(net: SuperNet) -> list[SubNet]:
    """The two SubNets in the middle of the parameters of twenty random ones."""
    drawn = sample_distinct(net.space, 20, np.random.default_rng(0))
    return sorted(drawn, key=lambda subnet: float(net.parameters().predict(subnet.to_array())[0]))[9:11]


def inherited_accuracies(net: SuperNet, splits: DataSplits, subnets: Sequence[SubNet]) -> list[float]:
    """Accuracies with inherited weights and recalibrated statistics, percent."""
    module, calibrator = net.module().eval(), Calibrator(splits, CalibrationConfig())
    return [
        percent(evaluate(module, subnet, splits.validation, calibrator.statistics(module, subnet)).values)
        for subnet in subnets
    ]


def rows(subjects: Sequence[Subject], epochs: Sequence[int], rates: Sequence[float], start: str) -> Iterator[Row]:
    """One row for each training."""
    for count in epochs:
        for subject in subjects:
            for lr in rates:
                found = subject.shared(lr, count)
                yield {"network": subject.network.name, "training": "finetune", "epochs": count, "lr": lr, **found}
    for subject in subjects if start else ():
        for lr in rates:
            yield {
                **{"network": subject.network.name, "training": "polish", "epochs": 3, "lr": lr},
                **subject.polished(lr, start),
            }


def show(table: pd.DataFrame) -> None:
    """Prints the table."""
    shown = Table(title="Accuracy on the validation set, percent")
    for column in table.columns:
        shown.add_column(column, justify="right")
    for row in table.itertuples(index=False):
        shown.add_row(
            *("" if value != value else f"{value:g}" if not isinstance(value, str) else value for value in row)
        )
    Console().print(shown)


def main() -> None:
    """Runs what is missing, prints the table, writes the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=[network.name for network in NETWORKS])
    parser.add_argument("--epochs", type=int, nargs="+", default=[3, 12])
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--polish-from", default="share_12_0.002", help="training whose SubNets are polished; '': none")
    parser.add_argument("--panel", type=int, default=4, help="random SubNets that are evaluated after training")
    parser.add_argument("--overrides", nargs="*", default=["finetune=mixed"], help="KEY=VALUE of the configuration")
    parser.add_argument("--directory", type=Path, default=Path("learning_rates"))
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    arguments = parser.parse_args()
    known = {network.name: network for network in NETWORKS}
    subjects = [
        Subject(known[name], arguments.directory.resolve(), tuple(arguments.overrides), arguments.panel)
        for name in arguments.networks
    ]
    found = []
    for row in rows(subjects, arguments.epochs, arguments.rates, arguments.polish_from):
        print(row, flush=True)
        found.append(row)
    table = pd.DataFrame(found)
    table.to_csv(arguments.csv, index=False, float_format="%.4f")
    show(table)


if __name__ == "__main__":
    main()
