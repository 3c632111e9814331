"""The stage: members are chosen, exported, and described by what the run knows."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import autotailor
import finished_runs
from autotailor import data, prediction, profiling, search
from autotailor.accuracy import CalibrationConfig
from autotailor.pool import making
from autotailor.pool.classes import Rates
from autotailor.pool.config import PoolConfig
from autotailor.pool.exported import ExportedMember
from autotailor.prediction import Measured
from autotailor.serving import PoolError
from autotailor.serving.files import open_pool

CONFIG = PoolConfig(members=4, slowdown=3.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_runs.make(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def run(folder: Path) -> making.Run:
    net = autotailor.load(folder.parent / "supernet.pt")
    device = json.loads((folder / "configuration.json").read_text())["device"]
    return making.Run(
        net,
        search.Front.read(folder / "pareto.csv", net.space),
        prediction.read_accuracy(folder / "accuracy.json", net.macs()),
        search.read_candidates(folder / "confirmed.csv", net.space).accuracies,
        profiling.LUT.read(folder / "lut.csv"),
        profiling.DeviceConfig.from_section(device),
    )


@pytest.fixture(scope="module")
def made(run: making.Run, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of the run, whose second SubNet is measured at three times its predicted latency."""
    section = json.loads((folder / "configuration.json").read_text())
    work, target = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("made") / "pool"
    calibration = CalibrationConfig.from_section(section["finetune"]["calibration"])
    export = making.exporter(run.net, run.net.module().eval(), data.load(section["data"]), calibration, work)

    def measure(members: Sequence[ExportedMember]) -> list[profiling.Measurement]:
        rows = np.stack([each.subnet.to_array() for each in members])
        predicted = run.net.latency(run.lut.latencies(), profiling.fusion_rules(run.device)).predict(rows)
        factors = [3.0 if number == 1 else 1.0 for number in range(len(members))]
        return [
            profiling.Measurement(each.subnet.id, float(ms) * factor, 0.01, 3, float(ms))
            for each, ms, factor in zip(members, predicted, factors, strict=True)
        ]

    preparation = data.load(section["data"]).preparation
    origin = making.origin_of("resnet_digits", run.device, CONFIG, preparation)
    making.make_pool(target, run, origin, CONFIG, export, measure)
    return target


def test_members_are_of_the_front_and_ordered_by_the_latency_that_counts(made: Path, run: making.Run) -> None:
    document = json.loads((made / "pool.json").read_text())
    front = {subnet.id for subnet in run.front.subnets}
    assert {each["subnet"] for each in document["members"]} <= front
    assert len(document["members"]) == CONFIG.members
    measured = [each["latency_ms"]["measured"] for each in document["members"]]
    assert measured == sorted(measured)
    tripled = [
        each for each in document["members"] if each["latency_ms"]["measured"] > 2 * each["latency_ms"]["predicted"]
    ]
    assert len(tripled) == 1
    assert document["front"]["subnets"] == len(run.front)
    assert document["front"]["expected_loss"] >= 0
    assert document["preparation"]["mean"]
    assert document["preparation"]["classes"] == list("0123456789")


def test_the_classes_are_those_of_the_table_at_the_measured_latency(made: Path, run: making.Run) -> None:
    latencies, fusion = run.lut.latencies(), profiling.fusion_rules(run.device)
    rates = Rates.of([row.feature for row in run.lut], latencies)
    for described, member in zip(
        json.loads((made / "pool.json").read_text())["members"], open_pool(made).index.members, strict=True
    ):
        subnet = autotailor.SubNet.from_assignment(run.net.space, described["assignment"])
        features = [operator.feature for operator in run.net.sequence(subnet, fusion)]
        split = np.array(rates.split_all(features, latencies))
        found = described["latency_ms"]
        assert split.sum() == pytest.approx(found["predicted"])
        np.testing.assert_allclose(member.split_ms, split / split.sum() * found["measured"], rtol=1e-9)
        assert member.latency_ms == pytest.approx(found["measured"])


def test_accuracy_is_that_of_the_evaluation_where_there_was_one(run: making.Run, folder: Path) -> None:
    table = pd.read_csv(folder / "confirmed.csv", dtype={"subnet": str}).drop_duplicates("subnet")
    for row in table.to_dict("records"):
        subnet = autotailor.SubNet.from_json(run.net.space, row["assignment"])
        assert making.accuracy_of(run, subnet) == (row["accuracy_posterior"], row["posterior_standard_error"], True)
    unknown = replace(run, evaluated={})
    value, error, is_evaluated = making.accuracy_of(unknown, run.front.subnets[0])
    assert not is_evaluated
    assert value == pytest.approx(run.front.accuracy[0])
    assert error is None or error > 0


def test_members_that_nobody_has_evaluated_are_evaluated_once(run: making.Run) -> None:
    first, second, third = run.front.subnets[:3]
    asked: list[list[str]] = []

    def evaluate(subnets: Sequence[autotailor.SubNet]) -> dict[str, Measured]:
        asked.append([subnet.id for subnet in subnets])
        return {subnet.id: Measured.alone(50.0, 2.0) for subnet in subnets}

    known = replace(run, evaluated={second.id: Measured(90.0, 1.0, 89.0, 0.5)})
    after = making.with_evaluated(known, (first, second, third), evaluate)
    assert asked == [[first.id, third.id]]
    facts = making.facts_of(after, (first, second, third), (None, None, None))
    assert [(each.accuracy, each.accuracy_error, each.is_evaluated) for each in facts] == [
        (50.0, 2.0, True),
        (89.0, 0.5, True),
        (50.0, 2.0, True),
    ]
    assert making.with_evaluated(after, (first, second, third), evaluate) is after
    assert making.with_evaluated(known, (first,), None) is known
    assert len(asked) == 1


def test_an_interrupted_run_exports_only_what_is_left(run: making.Run, tmp_path: Path, folder: Path) -> None:
    section = json.loads((folder / "configuration.json").read_text())
    calibration = CalibrationConfig.from_section(section["finetune"]["calibration"])
    splits, module = data.load(section["data"]), run.net.module().eval()
    subnet = run.front.subnets[0]
    first = making.exporter(run.net, module, splits, calibration, tmp_path)(subnet)
    before = first.weights.stat().st_mtime_ns
    again = making.exporter(run.net, module, splits, calibration, tmp_path)(subnet)
    assert again.weights.stat().st_mtime_ns == before
    np.testing.assert_array_equal(again.logits, first.logits)


def test_a_device_without_ncnn_is_refused() -> None:
    device = profiling.DeviceConfig("board", runtime="torch")
    with pytest.raises(PoolError, match=r"device board: its runtime is torch.*name a device whose runtime is ncnn"):
        making.origin_of("resnet_digits", device, CONFIG)


@pytest.mark.parametrize("runtime", ["ncnn", "ncnn-compiled"])
def test_the_options_are_those_of_the_measurements(runtime: str) -> None:
    device = profiling.DeviceConfig(
        "board", runtime=runtime, threads=4, precision="fp16", options={"use_winograd_convolution": False}
    )
    origin = making.origin_of("resnet_digits", device, CONFIG)
    assert (origin.device, origin.threads) == ("board", 4)
    assert origin.options["use_fp16_storage"]
    assert not origin.options["use_winograd_convolution"]
    assert not origin.options["use_int8_inference"]
