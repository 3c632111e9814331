"""Synthetic artifacts for the tests of the report."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.reporting import ReportInputs

NAMES = ("original", "largest", "budget_01", "budget_02", "budget_03")
KINDS = ("Conv 1×1", "Conv 3×3", "Add", "MaxPool", "Gemm")


def write_artifacts(directory: Path, seed: int = 0) -> ReportInputs:
    """Writes every artifact that the report can read; numbers are drawn, but look like a run's."""
    rng = np.random.default_rng(seed)
    directory.mkdir(parents=True, exist_ok=True)

    def save(name: str, columns: dict[str, object]) -> Path:
        path = directory / f"{name}.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        return path

    latency = np.sort(rng.uniform(0.35, 2.1, 60))
    pareto = save(
        "pareto",
        {
            "subnet": [f"{i:012x}" for i in range(60)],
            "accuracy_predicted": 93.5 - 9 * np.exp(-2.2 * (latency - 0.3)),
            "latency_ms_predicted": 0.9 * latency,
            "latency_ms_expected": latency,
            "macs_m": latency * 11,
            "found_by": ["both"] * 60,
            "assignment": [
                json.dumps({"resolution": 24, "stage1.depth": i % 2, "stage1.width": 0.5}) for i in range(60)
            ],
        },
    )
    predicted = np.array([np.nan, 2.1, 0.38, 0.92, 1.51])
    accuracy = np.array([93.8, 93.6, 85.6, 91.4, 93.0])
    summary = save(
        "summary",
        {
            "name": NAMES,
            "subnet": ["", *(f"{i:012x}" for i in (59, 0, 20, 40))],
            "weights": ["", "inherited", "polished", "polished", "inherited"],
            "latency_ms_predicted": 0.9 * predicted,
            "latency_ms_expected": predicted,
            "latency_ms_measured": [2.08, 2.07, 0.395, 0.948, 1.49],
            "latency_ms_standard_error": [0.01, 0.012, 0.004, 0.007, 0.009],
            "budget_ms": [np.nan, np.nan, 0.38, 1.0, 1.5],
            "budget_met": [np.nan, np.nan, False, True, True],
            "accuracy_predicted": [np.nan, 93.6, 84.9, 91.7, 93.1],
            "accuracy_predicted_standard_error": [np.nan, 0.5, 1.1, 0.7, 0.6],
            "accuracy_inherited": [np.nan, 93.6, 82.9, 89.0, 93.0],
            "accuracy_measured": accuracy,
            "accuracy_standard_error": [0.4, 0.41, 0.6, 0.5, 0.43],
            "accuracy_change_standard_error": [np.nan, 0.15, 0.5, 0.35, 0.2],
            "parameters_m": [0.92, 0.92, 0.21, 0.45, 0.68],
            "macs_m": [24.1, 24.1, 4.2, 10.3, 16.8],
            "size_mb": [3.7, 3.7, 0.86, 1.8, 2.7],
            "memory_mb_predicted": [7.9, 7.9, 2.4, 4.1, 5.8],
            "memory_mb_measured": [8.2, 8.1, 2.6, 4.3, 6.1],
            "energy_mj_predicted": [np.nan] * 5,
        },
    )
    measured = np.sort(rng.uniform(0.4, 2.0, 20))
    error = rng.normal(0.01, 0.035, 20)
    validation = save(
        "validation",
        {
            "subnet": [f"a{i:011x}" for i in range(20)],
            "name": [f"validation_{i:02d}" for i in range(20)],
            "predicted_ms": measured * (1 + error),
            "measured_ms": measured,
            "relative_error": error,
            "noise_floor": rng.uniform(0.005, 0.02, 20),
            "raw_error": error + 0.02,
            "anchor_drift": [0.3] * 20,
            "follows": [0.5] * 20,
        },
    )
    real = np.sort(rng.uniform(84, 93, 20))
    accuracy_validation = save(
        "accuracy_validation",
        {
            "subnet": [f"b{i:011x}" for i in range(20)],
            "predicted": real - 0.6 + rng.normal(0, 0.7, 20),
            "predicted_standard_error": 0.6,
            "measured": real,
            "standard_error": rng.uniform(0.4, 0.6, 20),
            "own_standard_error": 0.3,
        },
    )
    variables = [("resolution", (28, 24))]
    for stage in (1, 2, 3):
        variables += [(f"stage{stage}.depth", (1,)), (f"stage{stage}.width", (0.75, 0.5))]
        variables += [(f"block{2 * stage + b}.expand_ratio", (0.2, 0.125)) for b in (-2, -1)]
    rows = [(v, c, 0.4 * (k + 1) + abs(rng.normal(0, 0.9))) for v, cs in variables for k, c in enumerate(cs)]
    sensitivity = save(
        "sensitivity",
        {
            "variable": [r[0] for r in rows],
            "choice": [f"{r[1]:g}" for r in rows],
            "accuracy_drop": [r[2] for r in rows],
            "standard_error": rng.uniform(0.1, 0.35, len(rows)),
            "divergence": [0.01 * abs(r[2]) for r in rows],
            "divergence_standard_error": 0.002,
        },
    )
    operators = save(
        "operators",
        {
            "id": [f"c{i:011x}" for i in range(30)],
            "kind": ["Conv"] * 30,
            "feature": ["{}"] * 30,
            "places": rng.integers(1, 6, 30),
        },
    )
    lut = save(
        "lut",
        {
            "operator_id": [f"c{i:011x}" for i in range(30)],
            "feature": ["{}"] * 30,
            "fingerprint": ["f" * 12] * 30,
            "latency_ms": rng.uniform(0.005, 0.3, 30),
            "standard_error": rng.uniform(0.0001, 0.002, 30),
            "repeats": [12] * 30,
        },
    )
    places = [f"stage{s}.block{b}.conv{c}" for s in (1, 2, 3) for b in (0, 1) for c in (1, 2, 3)] + ["head.fc"]
    base = rng.uniform(0.02, 0.25, len(places))
    scale = {"largest": 1.0, "budget_01": 0.2, "budget_02": 0.45, "budget_03": 0.7}
    contributions = [
        (name, place, KINDS[i % 3] if place != "head.fc" else "Gemm", base[i] * s * rng.uniform(0.8, 1.2))
        for name, s in scale.items()
        for i, place in enumerate(places)
        if not (name == "budget_01" and "block1" in place)
    ]
    contributors = save(
        "contributors",
        {
            "name": [c[0] for c in contributions],
            "subnet": ["0" * 12] * len(contributions),
            "stage": [c[1].split(".")[0] if c[1].startswith("stage") else "" for c in contributions],
            "place": [c[1] for c in contributions],
            "kind": [c[2] for c in contributions],
            "operator": ["c" * 12] * len(contributions),
            "latency_ms": [c[3] for c in contributions],
        },
    )
    widths = [w for w in (0.375, 0.5, 0.75) for _ in range(3)]
    compare = save(
        "compare",
        {
            "name": [f"scaled_{w:g}" for w in widths],
            "subnets": ["budget_01"] * 3 + ["budget_02"] * 3 + ["budget_03"] * 3,
            "width": widths,
            "latency_ms_measured": [2.05 * w**1.4 + rng.normal(0, 0.01) for w in widths],
            "accuracy_measured": [93 - 9 * (1 - w) ** 1.6 + rng.normal(0, 0.3) for w in widths],
            "accuracy_standard_error": [0.5] * 9,
            "images": [163840] * 9,
            "learning_rate": [0.003] * 9,
            "seed": [0, 1, 2] * 3,
        },
    )
    stages = (
        "pretrain",
        "compile",
        "finetune",
        "enumerate",
        "profile",
        "validate",
        "sensitivity",
        "search",
        "export",
    )
    timings = save("timings", {"stage": stages, "seconds": [95.2, 4.1, 181.6, 0.4, 62.3, 21.9, 48.5, 2.4, 31.8]})

    ids, budgets = [f"{i:012x}" for i in (0, 20, 21, 40)], ["budget_01", "budget_02", "budget_02", "budget_03"]
    measured_accuracy = {
        "accuracy_predicted": [84.9, 91.7, 91.0, 93.1],
        "accuracy_validation": [84.0, 90.5, 91.5, 93.0],
        "standard_error": 0.6,
        "accuracy_posterior": [84.2, 90.7, 91.2, 93.1],
        "posterior_standard_error": 0.4,
        "chosen": [True, False, True, True],
    }
    named = {"budget": budgets, "subnet": ids, "budget_ms": [0.38, 1.0, 1.0, 1.5], "budget_share": np.nan}
    expected = np.array([0.38, 0.92, 0.94, 1.51])
    costs = {"latency_ms_predicted": 0.9 * expected, "latency_ms_expected": expected, "upper_ms": 1.06 * expected}
    costs["macs_m"] = [4.2, 10.1, 10.3, 16.8]
    candidates = save("candidates", {**named, **costs, **measured_accuracy})
    session = {
        "latency_ms_measured": [0.39, 0.93, 0.95, 1.48],
        "latency_ms_standard_error": 0.01,
        "share_measured": [0.19, 0.45, 0.46, 0.71],
        "share_standard_error": 0.01,
        "probability": [0.3, 0.98, 0.97, 0.99],
        "met": [False, True, True, True],
    }
    confirmed = save("confirmed", {**named, **costs, **measured_accuracy, **session})
    polish = save(
        "polish",
        {
            "round": [1, 1, 1, 2],
            "subnet": [ids[0], ids[1], ids[2], ids[1]],
            "budgets": ["budget_01", "budget_02 budget_03", "budget_02", "budget_02"],
            "epochs": [4, 4, 4, 8],
            "images": [1000, 1000, 1000, 3000],
            "accuracy_before": [84.2, 90.7, 91.2, 91.6],
            "accuracy_validation": [85.9, 91.6, 91.3, 92.0],
            "standard_error": 0.5,
            "divergence_before": [0.9, np.nan, np.nan, np.nan],  # empty where accuracy judges
            "divergence": [0.4, np.nan, np.nan, np.nan],
        },
    )

    def document(name: str, content: dict[str, object]) -> Path:
        path = directory / f"{name}.json"
        path.write_text(json.dumps(content))
        return path

    return ReportInputs(
        model="resnet_digits",
        device="host",
        pareto=pareto,
        summary=summary,
        validation=validation,
        accuracy_validation=accuracy_validation,
        sensitivity=sensitivity,
        baseline=document("sensitivity", {"schema_version": 1, "accuracy": 93.41, "standard_error": 0.42}),
        operators=operators,
        lut=lut,
        contributors=contributors,
        compare=compare,
        yardstick=document(
            "search",
            {
                "schema_version": 1,
                "genetic_subnets": 122,
                "exact_subnets": 133,
                "hypervolume_ratio": 0.99934,
                "largest_gap": 0.121,
                "mean_gap": 0.0021,
                "slack_ms": 0.0,
                "reason": "",
                "regret": {"budget_01": 0.42, "budget_02": 0.07},
            },
        ),
        space=document(
            "space",
            {
                "modifications": 41,
                "distinct_variants": "5038848",
                "variables": [{"name": name, "kind": name.split(".")[-1]} for name, _ in variables],
            },
        ),
        timings=timings,
        candidates=candidates,
        confirmed=confirmed,
        polish=polish,
        chosen=document(
            "polish",
            {
                "subnets": {
                    name: {"resolution": 32, "stage1.depth": number, "stage1.width": 1 / (1 + number)}
                    for number, name in enumerate(NAMES[1:])
                },
                "accuracy_validation": {
                    name: {"inherited": 90.0 - number, "polished": 92.0 if number in (1, 2) else None}
                    for number, name in enumerate(NAMES[1:])
                },
            },
        ),
        configuration=document(
            "configuration",
            {
                "seed": 0,
                "model": {"name": "resnet_digits", "space": {"divisor": 8, "width": [1.0, 0.75, 0.5]}},
                "device": {"name": "host", "threads": 1, "precision": "fp32"},
                "finetune": {"strategy": "compofa", "epochs": 30, "lr": 0.002},
                "search": {"population": 100, "generations": 100},
                "validate": {"subnets": 20, "promise": {"error": 0.05, "share": 0.5}},
            },
        ),
    )


@pytest.fixture(name="inputs")
def inputs_fixture(tmp_path: Path) -> ReportInputs:
    """All artifacts."""
    return write_artifacts(tmp_path)


@pytest.fixture(name="counted_inputs")
def counted_inputs_fixture(inputs: ReportInputs) -> ReportInputs:
    """All artifacts of a run without a device, whose budgets limit MACs."""
    for path in (inputs.pareto, inputs.summary, inputs.compare, inputs.candidates):
        assert path is not None
        table = pd.read_csv(path)
        if path == inputs.compare:
            table["macs_m"] = 10 * table["latency_ms_measured"]
        on_device = [
            name for name in table if name.startswith(("latency_ms", "memory_mb", "energy_mj", "budget_", "upper_"))
        ]
        table.drop(columns=on_device).to_csv(path, index=False)
    for path, changed in (
        (inputs.configuration, {"device": {"name": "macs", "cost": "macs"}}),
        (inputs.yardstick, {"slack_macs_m": 0.25}),
    ):
        assert path is not None
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    absent = dict.fromkeys(("validation", "operators", "lut", "contributors", "confirmed"))
    return dataclasses.replace(inputs, device="macs", **absent)


@pytest.fixture(name="bare_inputs")
def bare_inputs_fixture(inputs: ReportInputs) -> ReportInputs:
    """Only what the report cannot do without."""
    fields = {
        f.name: None for f in dataclasses.fields(inputs) if f.name not in ("model", "device", "pareto", "summary")
    }
    return dataclasses.replace(inputs, **fields)


@pytest.fixture(name="artifacts", scope="session")
def artifacts_fixture() -> Callable[..., ReportInputs]:
    """``write_artifacts``."""
    return write_artifacts
