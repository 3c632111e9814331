"""Where the time goes, against sums that are worked out one row at a time."""

import csv
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

import autotailor
from autotailor.ir.supernet import UNFUSED
from autotailor.reporting import ReportInputs, breakdown, contributors, stages_of
from autotailor.reporting.derived_columns import DERIVATIONS
from autotailor.reporting.inputs import Tables


@pytest.fixture(name="table")
def table_fixture(inputs: ReportInputs) -> pd.DataFrame:
    return Tables(inputs).needed("contributors")


@pytest.mark.parametrize("column", ["kind", "stage"])
def test_sums_by_kind_and_by_stage(column: str, inputs: ReportInputs, table: pd.DataFrame) -> None:
    assert inputs.contributors is not None
    expected: dict[tuple[str, str], float] = defaultdict(float)
    with inputs.contributors.open() as stream:
        for row in csv.DictReader(stream):
            expected[row["name"], row[column] or breakdown.OUTSIDE] += float(row["latency_ms"])
    found = breakdown.sums(table, column)
    assert {(n, g): found.loc[n, g] for n, g in expected} == pytest.approx(expected)
    assert found.to_numpy().sum() == pytest.approx(sum(expected.values()))
    for name, group in list(expected)[::5]:
        derived = DERIVATIONS[f"{column}_latency"].compute(Tables(inputs), f"{name}|{group}")
        assert derived == pytest.approx(expected[name, group])


def test_kinds_come_by_falling_latency_of_the_original(table: pd.DataFrame) -> None:
    of_original = breakdown.sums(table, "kind").loc["largest"].to_list()
    assert of_original == sorted(of_original, reverse=True)


def test_each_place_stands_beside_that_of_the_original_the_largest_first(table: pd.DataFrame) -> None:
    found = breakdown.places(table, "budget_01")
    removed = [place for place in found.index if "block1" in place]
    assert removed
    assert found.loc[removed, "after"].isna().all(), "budget_01 has no block1"
    most = [max(row["before"], 0 if np.isnan(row["after"]) else row["after"]) for _, row in found.iterrows()]
    assert most == sorted(most, reverse=True)
    for name, column in (("largest", "before"), ("budget_01", "after")):
        of_name = {row["place"]: row["latency_ms"] for row in table.to_dict("records") if row["name"] == name}
        assert found[column].dropna().to_dict() == of_name


def test_what_is_saved_sums_to_the_difference_of_the_networks(inputs: ReportInputs, table: pd.DataFrame) -> None:
    places = breakdown.places(table, "budget_01").index
    saved = sum(DERIVATIONS["saved"].compute(Tables(inputs), f"budget_01|{place}") for place in places)
    whole = table.groupby("name")["latency_ms"].sum()
    assert saved == pytest.approx(whole["largest"] - whole["budget_01"])


def test_stages_of_a_network_hold_the_places_of_their_blocks(resnet_net: autotailor.SuperNet) -> None:
    net = resnet_net
    places = net.places(UNFUSED)
    operators = net.operators()
    latencies = {feature.id: 1.0 + number for number, feature in enumerate(operators)}
    subnets = {"largest": net.largest(), "budget_01": net.smallest()}
    stages = stages_of(places, net.stages)
    table = contributors(places, latencies, subnets, stages)
    found = breakdown.sums(table, "stage")
    for name, subnet in subnets.items():
        for stage in net.stages:
            nodes = {node.name for block in stage.blocks for node in block.nodes}
            features = [place.feature(subnet) for place in places if place.label in nodes]
            expected = sum(latencies[feature.id] for feature in features if feature is not None)
            assert expected > 0
            assert found.loc[name, stage.name] == pytest.approx(expected)
        whole = net.latency(latencies, UNFUSED).predict(subnet.to_array())[0]
        assert found.loc[name].sum() == pytest.approx(whole), "with what stands outside of all stages"
