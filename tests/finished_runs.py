"""A finished run of the default network, made in seconds: real artifacts, with invented latencies and accuracies."""

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import autotailor
from autotailor import artifacts, config, data, prediction, search, sensitivity
from autotailor.finetuning import polishing
from autotailor.ir.metrics.sums import operator_macs
from autotailor.ir.space.subnet import SubNet, largest, sample_distinct, stack
from autotailor.measurement import confirmation
from autotailor.measurement.sessions import Timed
from autotailor.profiling import LUT, DeviceConfig, Fingerprint, LUTRow, fusion_rules
from autotailor.profiling.networks import validation
from autotailor.reporting.inputs import COLUMNS
from autotailor.zoo.resnet_digits import resnet_digits

ROOT = Path(__file__).parents[1]
SMALL = (
    "data.train_images=64",
    "data.evaluation_images=100",
    "finetune.calibration.images=32",
    "search.population=20",
    "search.generations=4",
    "search.candidates=3",
    "polish.rounds=[{candidates:2,epochs:1}]",
    "polish.joint.epochs=0",
    "polish.batch_size=32",
    "sensitivity.evaluations=0",
    "workers=1",
)
BUDGETS = 2
DEVICE = Fingerprint({"hardware": {"cpu": "of nobody"}, "runtime": {"name": "ncnn"}, "anchor": ""})


def make(root: Path) -> Path:
    """Makes ``results/resnet_digits/host`` in a folder, as a run would have left it; returns its path."""
    composed = config.compose(ROOT / "conf", "resnet_digits", "host", SMALL)
    folder = root / "results" / "resnet_digits" / "host"
    writer = Writer(folder, composed)
    net = autotailor.compile(resnet_digits(), composed["model"]["space"], name="resnet_digits", resolution=32)
    writer.networks(net)
    lut = writer.tables(net)
    writer.choice(net, lut)
    writer.record("report", [folder / "configuration.json"], [folder / "lut.csv"])
    return folder


def copy_configuration(root: Path) -> None:
    """Copies ``conf`` into the folder in which a run was started."""
    shutil.copytree(ROOT / "conf", root / "conf")


class Writer:
    """Writes artifacts with their provenance."""

    def __init__(self, folder: Path, composed: Mapping[str, Any]) -> None:
        self.folder, self.model, self.config = folder, folder.parent, composed
        folder.mkdir(parents=True)
        (folder / "configuration.json").write_text(json.dumps(composed), encoding="utf-8")
        self.sections = {"data": composed["data"], "data_content": data.fingerprint(composed["data"])}

    def record(self, rule: str, outputs: Sequence[Path], inputs: Sequence[Path] = ()) -> None:
        record = outputs[0].parent / "provenance" / f"{rule}.json"
        artifacts.Provenance(rule, self.sections, inputs).write(record, outputs)

    def networks(self, net: autotailor.SuperNet) -> None:
        for rule, name in (("compile", "compiled.pt"), ("finetune", "supernet.pt")):
            net.save(self.model / name)
            self.record(rule, [self.model / name])

    def tables(self, net: autotailor.SuperNet) -> LUT:
        """The tables of latencies and accuracies, and those that compare both with measurements."""
        supernet, random = self.model / "supernet.pt", np.random.default_rng(0)
        device = DeviceConfig.from_section(self.config["device"])
        operators = net.operators(fusion=fusion_rules(device))
        latencies = [0.002 + 0.01 * operator_macs(feature) for feature in operators]
        rows = (LUTRow(f, DEVICE.id, ms, ms / 50, 9) for f, ms in zip(operators, latencies, strict=True))
        lut = LUT(tuple(rows), DEVICE)
        lut.write(self.folder / "lut.csv")
        self.record("profile", [self.folder / "lut.csv"], [supernet])
        subnets = [net.largest(), *sample_distinct(net.space, 3, random)]
        predicted = net.latency(lut.latencies(), fusion_rules(device)).predict(stack(subnets))
        measured = predicted * np.array([1.0, 1.02, 0.98, 1.04])
        errors = predicted / measured - 1
        noise, lut_error = np.zeros(4), np.full(4, 0.02)
        times = [predicted, measured, errors, noise, measured, errors, lut_error]
        columns = [[s.id for s in subnets], *times, np.zeros(4), np.ones(4), np.zeros(4)]
        frame = pd.DataFrame(dict(zip(validation.COLUMNS, columns, strict=True)))
        frame.to_csv(self.folder / "validation.csv", index=False)
        self.record("validate", [self.folder / "validation.csv"], [self.folder / "lut.csv"])
        self._sensitivities(net, subnets, random)
        return lut

    def _sensitivities(self, net: autotailor.SuperNet, subnets: Sequence[SubNet], random: np.random.Generator) -> None:
        drops = [
            (v.name, choice, 0.0 if i == v.default else 1 + 3 * random.random(), 0.0 if i == v.default else 0.3)
            for v in net.space
            for i, choice in enumerate(v.choices)
        ]
        frame = pd.DataFrame(drops, columns=["variable", "choice", "accuracy_drop", "standard_error"])
        names = ("sensitivity.csv", "sensitivity.json", "accuracy_validation.csv")
        table, baseline, compared = (self.model / name for name in names)
        frame.to_csv(table, index=False)
        artifacts.write_json(baseline, {"accuracy": 95.0, "standard_error": 0.4, "set": "validation"})
        predicted = sensitivity.accuracy_metric(net.space, frame, 95.0).predict(stack(subnets))
        pd.DataFrame(
            {
                "subnet": [subnet.id for subnet in subnets],
                "assignment": [subnet.to_json() for subnet in subnets],
                "predicted": predicted,
                "measured": predicted + 1.0,
                "standard_error": 0.4,
            }
        ).to_csv(compared, index=False)
        self.record("sensitivity", [table, baseline], [self.model / "supernet.pt"])
        self.record("validate_accuracy", [compared], [self.model / "supernet.pt", table, baseline])

    def choice(self, net: autotailor.SuperNet, lut: LUT) -> None:
        """The front, the candidates of each budget, the exported SubNets and what was measured of them."""
        folder, settings = self.folder, search.SearchConfig.from_section(self.config["search"])
        fusion = fusion_rules(DeviceConfig.from_section(self.config["device"]))
        latency, errors = net.latency(lut.latencies(), fusion), net.latency_error(lut.standard_errors(), fusion)
        drops = pd.read_csv(self.model / "sensitivity.csv")
        predicted = sensitivity.predicted_accuracy(net.space, drops, 95.0, 0.4)
        accuracy = predicted.metric
        objectives = search.Objectives(accuracy, latency, (net.macs(), net.parameters()))
        found = search.search(objectives, settings)
        found.write(folder / "pareto.csv")
        prediction.write_accuracy(folder / "accuracy.json", predicted)

        def measure(subnets: Sequence[SubNet]) -> dict[str, prediction.Measured]:
            found = {s.id: float(accuracy.predict(s.to_array())[0]) for s in subnets}
            return {id_: prediction.Measured.alone(value, 0.5) for id_, value in found.items()}

        forecast = search.read_forecast(folder / "validation.csv", settings, errors, latency)
        choice = search.choose(objectives, found.front, BUDGETS, measure, settings, forecast)
        choice.write(folder / "candidates.csv")
        candidates = search.read_candidates(folder / "candidates.csv", net.space)
        time = partial(self._time, latency)
        confirmed = confirmation.confirm(objectives, found.front, candidates, forecast, time, measure, 0)
        confirmed.write(folder / "confirmed.csv")
        read = [folder / "lut.csv", self.model / "sensitivity.csv"]
        self.record("search", [folder / name for name in ("pareto.csv", "candidates.csv", "accuracy.json")], read)
        self.record("confirm", [folder / "confirmed.csv"], [folder / "candidates.csv"])
        named = {"largest": polishing.Polished(net.largest(), 95.0)}
        for number, (name, subnet) in enumerate(confirmed.subnets.items()):
            inherited, weights = measure([subnet])[subnet.id].accuracy, net.slice(subnet).weights
            own = (inherited + 1.0, weights, 100) if number else ()
            named[name] = polishing.Polished(subnet, inherited, *own)
        polishing.write_exported(folder / "polish.json", folder / "polished.pt", named)
        self.record("polish", [folder / "polish.json", folder / "polished.pt"], [folder / "confirmed.csv"])
        self._summary(named, latency)

    def _time(self, latency: Any, subnets: Sequence[SubNet]) -> list[Timed]:
        """Latencies that are 2 % above the prediction."""
        found = 1.02 * latency.predict(stack(subnets))
        whole = 1.02 * float(latency.predict(largest(latency.space).to_array())[0])
        return [Timed(ms, 0.005 * ms, ms / whole, 0.005 * ms / whole) for ms in found.tolist()]

    def _summary(self, named: Mapping[str, polishing.Polished], latency: Any) -> None:
        rows = [
            dict.fromkeys(COLUMNS["summary"], 1.0)
            | {
                "name": name,
                "subnet": each.subnet.id,
                "weights": "inherited" if each.weights is None else "polished",
                "latency_ms_expected": float(latency.predict(each.subnet.to_array())[0]),
                "latency_ms_measured": self._time(latency, [each.subnet])[0].latency_ms,
                "latency_ms_standard_error": self._time(latency, [each.subnet])[0].standard_error,
                "share_measured": self._time(latency, [each.subnet])[0].share,
                "share_standard_error": self._time(latency, [each.subnet])[0].share_error,
                "accuracy_measured": each.inherited,
                "memory_mb_measured": np.nan,
            }
            for name, each in named.items()
        ]
        pd.DataFrame(rows).to_csv(self.folder / "summary.csv", index=False)
        self.record("measure", [self.folder / "summary.csv"], [self.folder / "polish.json", self.folder / "lut.csv"])
