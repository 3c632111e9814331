from pathlib import Path

import numpy as np
import pytest

import autotailor
from autotailor.profiling import DeviceConfig, Measurement, ProfilingError, fusion_rules, profile, validate
from autotailor.profiling.networks.validation import COLUMNS, table, validation_subnets
from autotailor.statistics import kendall_tau

DEVICE = DeviceConfig.from_section({"name": "test", "precision_target": 0.2, "min_minutes": 0, "max_minutes": 0.2})


@pytest.fixture(scope="module")
def net() -> autotailor.SuperNet:
    return autotailor.compile("autotailor.zoo:mobilenet_digits", resolution=32)


def test_chosen_subnets_hold_the_ends_and_are_the_same_every_time(net: autotailor.SuperNet) -> None:
    chosen = validation_subnets(net.space, 8, 3)
    assert chosen == validation_subnets(net.space, 8, 3)
    assert chosen[:2] == (net.largest(), net.smallest())
    assert len({subnet.id for subnet in chosen}) == 8


def test_table_compares_prediction_and_the_mean_of_the_rounds(net: autotailor.SuperNet) -> None:
    subnets = (net.largest(), net.smallest())
    first = [Measurement("a", 2.0, 0.0, 1, 2.1, 0.3, 0.5), Measurement("b", 1.0, 0.0, 1, 1.0)]
    between = [Measurement("a", 2.1, 0.0, 1, 2.2), Measurement("b", 1.0, 0.0, 1, 1.0)]
    last = [Measurement("a", 2.2, 0.0, 1, 2.3), Measurement("b", 1.0, 0.0, 1, 1.0)]
    frame = table(subnets, net.macs(), [first, between, last])
    assert tuple(frame.columns) == COLUMNS
    assert frame["measured_ms"].tolist() == pytest.approx([2.1, 1.0])
    assert frame["noise_floor"].tolist() == pytest.approx([0.2 / 2.1, 0.0])
    assert np.allclose(frame["predicted_ms"] / frame["measured_ms"] - 1, frame["relative_error"])
    assert frame["raw_ms"].tolist() == pytest.approx([2.2, 1.0])
    assert np.allclose(frame["predicted_ms"] / [2.2, 1.0] - 1, frame["raw_error"])
    assert frame["anchor_drift"].tolist() == pytest.approx([0.1, 0.0])
    assert frame["follows"].tolist() == pytest.approx([2.5 / 3, 1.0])
    assert frame["share_noise"].tolist() == pytest.approx([0.0, np.std(np.log([2.0, 2.1, 2.2]), ddof=1)])
    alone = table(subnets[1:], net.macs(), [each[1:] for each in (first, between, last)])
    assert alone["share_noise"].isna().all()
    assert kendall_tau(frame["predicted_ms"], frame["measured_ms"]) == 1.0


def test_one_round_shows_no_noise(net: autotailor.SuperNet, tmp_path: Path) -> None:
    with pytest.raises(ProfilingError, match="rounds is 1, expected 2 or more"):
        validate(net, net.macs(), (net.largest(),), DEVICE, tmp_path, rounds=1)


def test_sums_of_operators_are_near_whole_subnets(net: autotailor.SuperNet, tmp_path: Path) -> None:
    subnets = (net.largest(), net.smallest())
    rules = fusion_rules(DEVICE)
    operators = [feature for subnet in subnets for feature in net.operators(subnet, fusion=rules)]
    lut = profile(operators, DEVICE, tmp_path / "journal.jsonl")
    net_latencies = lut.latencies()
    predicted = [sum(net_latencies[f.id] for f in net.operators(s, fusion=rules)) for s in subnets]
    assert predicted[0] > 2 * predicted[1]
    metric = net.macs()
    frame = validate(net, metric, subnets, DEVICE, tmp_path / "networks", lut=lut, seconds_each=0.2)
    assert (frame["measured_ms"] > 0).all()
    assert frame["measured_ms"][0] > 2 * frame["measured_ms"][1]
    assert (frame["measured_ms"].to_numpy() < 4 * np.array(predicted)).all()
