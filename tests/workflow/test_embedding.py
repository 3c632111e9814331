"""A network for embeddings as a person has it, on pictures in folders of classes, by the guide's commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest

import checkouts
import documents
import strangers
import vectors
from autotailor import config, data

pytestmark = pytest.mark.timeout(1500)
GUIDE = checkouts.ROOT / "docs" / "guides" / "numbers.md"
LESS = ("polish.rounds=[{candidates: 1, epochs: 4}]", "sensitivity.evaluations=8", "sensitivity.validate_subnets=2")


def test_vectors_keep_their_neighbours_at_half_the_cost(tmp_path: Path) -> None:
    assert checkouts.shell("python -m autotailor new project", tmp_path).returncode == 0
    project = tmp_path / "project"
    strangers.write_photos(project / "photos")
    vectors.write_network(project / "photos", project / "models" / "vectors.onnx")
    commands = documents.run_by(GUIDE, "test_embedding")
    assert len(commands) == 2
    for command in commands:
        less = " ".join(f"'{each}'" for each in LESS) if "autotailor run" in command else ""
        done = checkouts.shell(f"{command.replace('device=host', 'device=macs')} {less}", project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"

    results = project / "results" / "vectors" / "macs"
    summary = pd.read_csv(results / "summary.csv").set_index("name")
    assert summary.loc["original", "accuracy_measured"] > 85
    assert summary.loc["budget_01", "accuracy_measured"] > 70
    assert summary.loc["budget_01", "macs_m"] < 0.51 * summary.loc["original", "macs_m"]
    for name in ("largest", "budget_01"):
        said = json.loads((results / "exports" / name / "verification.json").read_text())
        assert said["passed"]

    section = config.compose(project / "conf", "vectors", "macs", ["data.fractions=[0.5,0.25,0.25]"])["data"]
    splits = data.load({**section, "root": str(project / "photos")})
    images, labels = next(splits.test.batches(1000))
    session = onnxruntime.InferenceSession(
        str(results / "exports" / "largest" / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    found = np.concatenate([session.run(None, {session.get_inputs()[0].name: one[None]})[0] for one in images.numpy()])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-4)
    alike = found @ found.T - 2 * np.eye(len(found))
    right = 100 * float((labels[alike.argmax(1)] == labels).float().mean())
    assert summary.loc["largest", "accuracy_measured"] == pytest.approx(right)
    card = (results / "exports" / "largest" / "README.md").read_text()
    assert "A network for embeddings with 16 outputs" in card
    assert "**P@1**" in card
    assert "violin" not in card
