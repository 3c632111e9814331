"""A stranger's network and pictures, by the README's commands word for word, down to verified exports and a report."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch

import checkouts
import documents
import strangers

pytestmark = pytest.mark.timeout(1500)  # the first test waits for the commands


def commands() -> list[str]:
    """The README's commands for an own model and own data: the block that names both."""
    blocks = re.findall(r"```sh\n(.*?)```", (checkouts.ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if "models/mine.onnx --data photos" in block]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which a stranger has put a model and pictures, and has run the README's commands."""
    project = checkouts.make(tmp_path_factory.mktemp("stranger") / "autotailor")
    strangers.write_photos(project / "photos")
    model = strangers.train(strangers.network(), project / "photos")
    strangers.export(model, project / "models" / "mine.onnx")
    torch.save(model.state_dict(), project / "trained.pt")
    for command in commands():
        done = checkouts.shell(command, project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    return project


@pytest.fixture(scope="module")
def results(project: Path) -> Path:
    return project / "results" / "mine"


def test_an_own_model_with_own_data_takes_at_most_three_commands() -> None:
    assert 2 <= len(commands()) <= 3


def test_the_file_is_one_as_strangers_have_it(project: Path) -> None:
    model = onnx.load(str(project / "models" / "mine.onnx"), load_external_data=False)
    assert (project / "models" / "mine.onnx.data").is_file()
    assert "BatchNormalization" not in {node.op_type for node in model.graph.node}


def test_nothing_but_the_readmes_commands_leads_to_the_report(results: Path) -> None:
    text = (results / "host" / "report.html").read_text(encoding="utf-8")
    assert "mine" in text
    assert len(list((results / "host" / "exports").iterdir())) == 3


def test_the_network_starts_from_the_strangers_weights(project: Path, results: Path) -> None:
    """The compiled network computes what the stranger's own PyTorch module computes."""
    original = strangers.network()
    original.load_state_dict(torch.load(project / "trained.pt"))
    original.eval()
    images, _ = strangers.read_photos(project / "photos")
    session = onnxruntime.InferenceSession(str(results / "model.onnx"))
    name = session.get_inputs()[0].name
    found = np.concatenate([session.run(None, {name: image[None].numpy()})[0] for image in images[:20]])
    with torch.no_grad():
        wanted = original(images[:20]).numpy()
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_the_original_is_measured_as_good_as_the_stranger_left_it(project: Path, results: Path) -> None:
    """Class order, resolution, mean and deviation are right: the stranger's accuracy comes out on held-out pictures."""
    summary = pd.read_csv(results / "host" / "summary.csv").set_index("name")
    original = strangers.network()
    original.load_state_dict(torch.load(project / "trained.pt"))
    images, labels = strangers.read_photos(project / "photos")
    with torch.no_grad():
        own = 100 * (original.eval()(images).argmax(1) == labels).double().mean().item()
    error = summary.loc["original", "accuracy_standard_error"]
    assert abs(summary.loc["original", "accuracy_measured"] - own) <= 4 * error + 2


def test_every_export_is_verified_and_measured(results: Path) -> None:
    summary = pd.read_csv(results / "host" / "summary.csv").set_index("name")
    for export in (results / "host" / "exports").iterdir():
        verification = json.loads((export / "verification.json").read_text())
        assert verification["passed"]
        assert summary.loc[export.name, "latency_ms_measured"] > 0
        session = onnxruntime.InferenceSession(str(export / "model.onnx"))
        x = np.ones(session.get_inputs()[0].shape, dtype=np.float32)
        assert session.run(None, {session.get_inputs()[0].name: x})[0].shape == (1, len(strangers.CLASSES))


def test_the_finished_run_answers_the_questions_of_the_guide(project: Path, results: Path) -> None:
    """The commands and the Python of the guide, word for word; the run itself stays as it is."""
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    guide = list(documents.blocks(checkouts.ROOT / "docs" / "guides" / "questions.md"))
    told = [command for block in guide if block.language == "sh" for command in documents.commands(block.code)]
    (python,) = (block.code for block in guide if block.language == "python")
    (project / "questions.py").write_text(python, encoding="utf-8")
    for command in [*told, "python questions.py"]:
        done = checkouts.shell(command, project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    assert sorted({command.split()[3] for command in told}) == ["export", "front", "predict", "why"]
    answer = json.loads((project / "more" / "seventy" / "export.json").read_text())
    assert answer["measured"]["latency"]["value"] > 0
    assert answer["meets_budget"] == (answer["measured"]["latency"]["value"] <= answer["budget"]["value"])
    assert json.loads((project / "more" / "sixty" / "verification.json").read_text())["passed"]
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*")} == before


def test_a_retrained_file_of_the_same_name_is_compiled_and_trained_again(project: Path) -> None:
    """Yesterday's results never stand under today's name."""
    nothing = checkouts.shell("snakemake -n --config model=mine device=host", project)
    assert "Nothing to be done" in nothing.stdout + nothing.stderr, nothing.stdout + nothing.stderr
    data = project / "models" / "mine.onnx.data"
    before = data.read_bytes()
    weights = np.frombuffer(before, dtype=np.float32) * np.float32(1.01)
    data.write_bytes(weights.tobytes())
    try:
        planned = checkouts.shell("snakemake -n --config model=mine device=host", project)
    finally:
        data.write_bytes(before)
    jobs = dict(re.findall(r"^(\w+)\s+(\d+)$", planned.stdout + planned.stderr, re.MULTILINE))
    assert {"compile", "finetune", "sensitivity", "search", "export"} <= set(jobs)
