"""A pendulum's length from windows of its motion, by the guide's commands, down to verified exports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import yaml

import checkouts
import documents
import pendulums
import signal_cards
from autotailor import config, data

pytestmark = pytest.mark.timeout(1500)
GUIDE = checkouts.ROOT / "docs" / "guides" / "numbers.md"
LESS = ("polish.rounds=[{candidates: 1, epochs: 8}]", "sensitivity.validate_subnets=6")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a person's windows and network, behind the guide's commands."""
    folder = tmp_path_factory.mktemp("numbers")
    assert checkouts.shell("python -m autotailor new project", folder).returncode == 0
    project = folder / "project"
    (project / "models").mkdir(exist_ok=True)
    pendulums.write_network(pendulums.write_windows(project / "windows.npz"), project / "models" / "pendulum.onnx")
    commands = documents.run_by(GUIDE, "test_regression")
    assert len(commands) == 2
    for command in commands:
        less = " ".join(f"'{each}'" for each in LESS) if "autotailor run" in command else ""
        done = checkouts.shell(f"{command.replace('device=host', 'device=macs')} {less}", project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    return project


@pytest.fixture(scope="module")
def exports(project: Path) -> Path:
    return project / "results" / "pendulum" / "macs" / "exports"


def test_the_subnet_of_half_the_cost_knows_the_length(exports: Path) -> None:
    summary = pd.read_csv(exports.parent / "summary.csv").set_index("name")
    assert summary.loc["original", "accuracy_measured"] > 95
    assert summary.loc["budget_01", "accuracy_measured"] > 93
    assert summary.loc["budget_01", "macs_m"] < 0.51 * summary.loc["original", "macs_m"]
    for folder in exports.iterdir():
        said = json.loads((folder / "verification.json").read_text())
        assert said["passed"]
        assert {each["runtime"] for each in said["comparisons"]} == {"onnxruntime", "torch", "ncnn"}


def test_the_files_return_centimetres_whose_r2_the_summary_says(project: Path, exports: Path) -> None:
    section = config.compose(project / "conf", "pendulum", "macs", ["data.fractions=[0.6,0.2,0.2]"])["data"]
    splits = data.load({**section, "root": str(project / "windows.npz")})
    (images, wanted), summary = next(splits.test.batches(1000)), pd.read_csv(exports.parent / "summary.csv")
    for name in ("largest", "budget_01"):
        session = onnxruntime.InferenceSession(
            str(exports / name / "model.given.onnx"), providers=["CPUExecutionProvider"]
        )
        said = np.concatenate([session.run(None, {"window": one[None, :, 0]})[0] for one in images.numpy()])
        assert ((said > 0) & (said < pendulums.LONGEST)).all()
        lost, scatter = np.square(said - wanted.numpy()).sum(), np.square(wanted - wanted.mean()).sum().item()
        measured = summary.set_index("name").loc[name]
        assert measured["accuracy_measured"] == pytest.approx(100 * (1 - lost / scatter), abs=0.01)
        assert 0 < measured["accuracy_standard_error"] < 2


def test_report_card_and_configuration_call_things_by_their_names(project: Path, exports: Path) -> None:
    written = yaml.safe_load((project / "conf" / "model" / "pendulum.yaml").read_text())
    assert (written["data"]["task"], written["model"]["num_classes"]) == ("regression", 1)
    card = (exports / "budget_01" / "README.md").read_text()
    assert "A network for regression with 1 output, for signals of [2, 64] numbers." in card
    assert "**R²**" in card
    assert "answer" not in card.replace("same answer", "")
    report = (exports.parent / "report.html").read_text()
    assert "closeness" in report
    assert "R² as predicted" not in report


def test_the_cards_program_returns_the_length(project: Path, exports: Path) -> None:
    with np.load(project / "windows.npz") as archive:
        wanted = float(archive["y"][7])
    (length,) = json.loads(signal_cards.printed(exports / "budget_01", project / "windows.npz", 7))
    assert length == pytest.approx(wanted, abs=40)
