"""A trained network and a folder of pictures without labels, by two commands, down to verified exports and a report."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import checkouts
import strangers

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(1500)]  # the first test waits for the commands
SMALL = "finetune.epochs=12,model.space.resolution=[32,40],model.space.width=[]"
COMMANDS = (
    "python -m autotailor inspect models/mine.onnx --data pictures --yaml > conf/model/mine.yaml",
    f"snakemake --cores all --config model=mine device=host 'overrides=[{SMALL}]'",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a network that knows the pictures' classes, and the pictures without them."""
    project = checkouts.make(tmp_path_factory.mktemp("unlabelled") / "autotailor")
    photos = tmp_path_factory.mktemp("labelled")
    strangers.write_photos(photos)
    strangers.export(strangers.train(strangers.network(), photos), project / "models" / "mine.onnx")
    (project / "pictures").mkdir()
    for path in photos.glob("*/*.jpg"):
        shutil.copy(path, project / "pictures" / f"{path.parent.name[0]}{path.name}")
    for command in COMMANDS:
        done = checkouts.shell(command, project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    beside = project / ".snakemake" / "autotailor" / "output.txt"
    (project / "said.txt").write_text(done.stdout + done.stderr + beside.read_text())
    return project


@pytest.fixture(scope="module")
def results(project: Path) -> Path:
    return project / "results" / "mine"


def test_a_flat_folder_is_enough_down_to_the_exports(results: Path) -> None:
    exports = list((results / "host" / "exports").iterdir())
    assert len(exports) == 3
    for export in exports:
        assert json.loads((export / "verification.json").read_text())["passed"]


def test_the_original_network_agrees_with_itself_and_its_subnets_mostly(results: Path) -> None:
    summary = pd.read_csv(results / "host" / "summary.csv").set_index("name")
    assert summary.loc["original", "accuracy_measured"] == 100
    assert 60 < summary.loc["largest", "accuracy_measured"] <= 100
    trained = json.loads((results / "finetune.json").read_text())
    assert trained["original_validation_accuracy"] == 100


def test_a_person_reads_of_agreement(project: Path, results: Path) -> None:
    said = (project / "said.txt").read_text()
    assert "whether the original network knows these pictures well cannot be checked" in said
    assert "agreement predicted against measured" in said
    assert not re.findall(r"(?m)^(?!.*(?:/|\.csv)).*accurac.*$", said)
    assert "agreement is the share of the pictures" in (results / "host" / "report.html").read_text(encoding="utf-8")
    table = checkouts.shell("python workflow/finish.py mine host", project).stdout
    assert "agreement %" in table
    assert "accuracy" not in table


def test_nothing_runs_twice(project: Path) -> None:
    again = checkouts.shell(COMMANDS[1].replace("--cores all", "-n"), project)
    assert "Nothing to be done" in again.stdout + again.stderr, again.stdout + again.stderr


def test_other_answers_of_the_original_network_would_be_measured_again(project: Path) -> None:
    """The rules that need the answers have the original network among their inputs."""
    planned = checkouts.shell(COMMANDS[1].replace("--cores all", "-n --forcerun compile"), project)
    assert {"compile", "finetune", "sensitivity", "search", "measure"} <= set(
        re.findall(r"^(\w+)\s+\d+$", planned.stdout + planned.stderr, re.MULTILINE)
    )
