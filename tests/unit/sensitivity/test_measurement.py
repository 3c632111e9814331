from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import autotailor
import tiny_data
from autotailor import sensitivity
from autotailor.accuracy import CalibrationConfig, side_by_side
from autotailor.ir.space.subnet import stack
from autotailor.ir.space.variable import Modification
from autotailor.sensitivity import (
    Sensitivity,
    SensitivityConfig,
    SensitivityError,
    accuracy_metric,
    measurement,
)
from autotailor.sensitivity.validation import COLUMNS

CONFIG = SensitivityConfig(batch_size=20, validate_subnets=5, calibration=CalibrationConfig(16, 16))


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sensitivity") / "journal.jsonl"


@pytest.fixture(scope="module")
def measured(resnet_net: autotailor.SuperNet, journal: Path) -> Sensitivity:
    return sensitivity.measure(resnet_net, tiny_data.splits(), CONFIG, journal)


def made_up(net: autotailor.SuperNet) -> pd.DataFrame:
    rows = [(v.name, c, 0.1 * i + 0.01 * j) for i, v in enumerate(net.space) for j, c in enumerate(v.choices)]
    return pd.DataFrame(rows, columns=["variable", "choice", "accuracy_drop"])


def test_every_modification_has_a_row(resnet_net: autotailor.SuperNet, measured: Sensitivity) -> None:
    rows = measured.rows
    assert list(rows.columns) == [
        *("variable", "choice", "accuracy_drop", "standard_error"),
        *("divergence", "divergence_standard_error"),
    ]
    assert rows[["divergence", "divergence_standard_error"]].isna().all(axis=None)
    assert list(zip(rows.variable, rows.choice, strict=True)) == [
        (v.name, c) for v in resnet_net.space for c in v.choices
    ]
    defaults = {(v.name, v.choices[v.default]) for v in resnet_net.space}
    unmodified = rows[[(v, c) in defaults for v, c in zip(rows.variable, rows.choice, strict=True)]]
    assert (unmodified.accuracy_drop == 0).all()
    assert (unmodified.standard_error == 0).all()
    assert 0 <= measured.baseline <= 100
    assert measured.baseline_standard_error > 0
    assert all(isinstance(c, int) for c in rows[rows.variable == "resolution"].choice)


def test_where_divergences_judge_they_stand_beside_the_drops(
    resnet_net: autotailor.SuperNet, measured: Sensitivity, tmp_path: Path
) -> None:
    judged = replace(CONFIG, judge="divergence")
    rows = sensitivity.measure(resnet_net, tiny_data.splits(), judged, tmp_path / "journal.jsonl").rows
    outcomes = sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), judged, tmp_path / "journal.jsonl")
    pd.testing.assert_frame_equal(rows[list(measurement.COLUMNS[:4])], measured.rows[list(measurement.COLUMNS[:4])])
    for _, row in rows[rows["variable"] == "stage1.width"].iterrows():
        modified = resnet_net.largest().transform(Modification(row["variable"], row["choice"]))
        losses = outcomes.reference.losses if modified == resnet_net.largest() else outcomes.by_id[modified.id].losses
        assert row["divergence"] == pytest.approx(float(np.mean(losses)))
    assert (rows["divergence_standard_error"] >= 0).all()
    assert rows["divergence"].max() > 0.0


def test_a_second_run_takes_everything_from_the_journal(
    resnet_net: autotailor.SuperNet, measured: Sensitivity, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("evaluated again")

    monkeypatch.setattr(side_by_side.Evaluator, "_group", refuse)
    again = sensitivity.measure(resnet_net, tiny_data.splits(), CONFIG, journal)
    pd.testing.assert_frame_equal(again.rows, measured.rows)


def test_a_cut_journal_ends_in_the_same_rows(
    resnet_net: autotailor.SuperNet, measured: Sensitivity, journal: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "journal.jsonl"
    content = journal.read_bytes()
    cut.write_bytes(content[: len(content) * 2 // 3])
    again = sensitivity.measure(resnet_net, tiny_data.splits(), CONFIG, cut)
    pd.testing.assert_frame_equal(again.rows, measured.rows)
    assert sorted(cut.read_bytes().splitlines()) == sorted(content.splitlines())


def test_drops_can_be_measured_on_some_images(
    resnet_net: autotailor.SuperNet, measured: Sensitivity, journal: Path, tmp_path: Path
) -> None:
    data = tiny_data.splits()
    few = sensitivity.measure(resnet_net, data, replace(CONFIG, images=10), tmp_path / "few.jsonl")
    chosen = np.unique(np.linspace(0, 39, 10).astype(int))
    only = replace(data, validation=data.validation.part(chosen))
    expected = sensitivity.measure(resnet_net, only, CONFIG, tmp_path / "only.jsonl")
    pd.testing.assert_frame_equal(few.rows, expected.rows)
    assert few.baseline == expected.baseline
    more = sensitivity.measure(resnet_net, data, replace(CONFIG, images=41), journal)  # the journal of all images
    pd.testing.assert_frame_equal(more.rows, measured.rows)


def test_the_metric_is_the_baseline_minus_the_drops(resnet_net: autotailor.SuperNet) -> None:
    rows = made_up(resnet_net)
    metric = accuracy_metric(resnet_net.space, rows, 90.0)
    base = resnet_net.largest()
    assert (metric.name, metric.unit) == ("accuracy", "%")
    assert metric.predict(base.to_array())[0] == 90.0
    changed = base.transform(Modification("resolution", 20)).transform(Modification("stage1.width", 0.5))
    wanted = 90.0 - sum(
        rows[(rows.variable == v) & (rows.choice == c)].accuracy_drop.item()
        for v, c in (("resolution", 20), ("stage1.width", 0.5))
    )
    assert metric.predict(changed.to_array())[0] == pytest.approx(wanted)


def test_a_removed_block_costs_nothing_more(resnet_net: autotailor.SuperNet) -> None:
    metric = accuracy_metric(resnet_net.space, made_up(resnet_net), 90.0)
    gated = next(v for v in resnet_net.space if v.gate is not None)
    shallow = resnet_net.largest().transform(Modification(gated.gate.variables[0], 1))  # type: ignore[union-attr]
    array = shallow.to_array()
    array[resnet_net.space.positions[gated.name]] = 0  # not canonical on purpose
    assert metric.predict(array)[0] == metric.predict(shallow.to_array())[0]


def test_a_csv_gives_the_same_metric(resnet_net: autotailor.SuperNet, measured: Sensitivity, tmp_path: Path) -> None:
    measured.rows.to_csv(tmp_path / "s.csv", index=False)
    subnets = stack(resnet_net.sample(np.random.default_rng(i)) for i in range(20))
    direct = accuracy_metric(resnet_net.space, measured.rows, measured.baseline)
    read = accuracy_metric(resnet_net.space, pd.read_csv(tmp_path / "s.csv"), measured.baseline)
    assert np.allclose(direct.predict(subnets), read.predict(subnets))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows.drop(columns="choice"), "columns"),
        (lambda rows: rows[rows.variable != "resolution"], "resolution = 20 is missing"),
        (lambda rows: pd.concat([rows, rows.head(1)]), "twice"),
        (lambda rows: rows.assign(accuracy_drop=np.nan), "finite"),
        (
            lambda rows: pd.concat([rows, pd.DataFrame([("x", 1, 0.0)], columns=rows.columns)]),
            "not a modification",
        ),
    ],
    ids=["columns", "missing", "twice", "nan", "other"],
)
def test_rows_that_do_not_fit_are_refused(change: object, says: str, resnet_net: autotailor.SuperNet) -> None:
    with pytest.raises(SensitivityError, match=says):
        accuracy_metric(resnet_net.space, change(made_up(resnet_net)), 90.0)  # type: ignore[operator]


def test_whole_subnets_are_compared_on_the_test_set(
    resnet_net: autotailor.SuperNet, measured: Sensitivity, tmp_path: Path
) -> None:
    data = tiny_data.splits()
    subnets = sensitivity.validation_subnets(resnet_net, CONFIG)
    assert len(set(subnets)) == 5
    assert subnets == sensitivity.validation_subnets(resnet_net, CONFIG)
    table = sensitivity.validate_accuracy(
        resnet_net, data, measured, [resnet_net.largest(), *subnets], CONFIG, tmp_path / "j"
    )
    assert tuple(table.columns) == COLUMNS
    first = table.iloc[0]
    assert first["predicted"] == first["measured"]
    assert (first["standard_error"], first["predicted_standard_error"], first["own_standard_error"]) == (0, 0, 0)
    assert (table["own_standard_error"][1:] > 0).any()
    assert list(table.subnet[1:]) == [subnet.id for subnet in subnets]


def test_what_does_not_fit_is_refused(resnet_net: autotailor.SuperNet, measured: Sensitivity, tmp_path: Path) -> None:
    import networks

    other = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    data = tiny_data.splits()
    with pytest.raises(SensitivityError, match="at least one"):
        sensitivity.validate_accuracy(resnet_net, data, measured, [], CONFIG, tmp_path / "j")
    with pytest.raises(SensitivityError, match="does not belong to the space"):
        sensitivity.validate_accuracy(resnet_net, data, measured, [other.smallest()], CONFIG, tmp_path / "j")


@pytest.mark.parametrize(
    "bad",
    [{"batch_size": 0}, {"memory_mb": -1}, {"validate_subnets": 1}, {"threads": "two"}, {"treads": 2}, "fast"],
    ids=str,
)
def test_parameters_out_of_range_are_refused_by_name(bad: object) -> None:
    says = next(iter(bad)) if isinstance(bad, dict) else "mapping"
    with pytest.raises(SensitivityError, match=says):
        SensitivityConfig.from_section(bad)  # type: ignore[arg-type]
    assert SensitivityConfig.from_section({"calibration": {"images": 9}}).calibration.images == 9
