"""Torchvision's SSDLite320 as a person has it, by the guide's commands, down to verified exports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import anchored
import boxed
import checkouts

pytestmark = pytest.mark.timeout(1500)
SIDE = 96
SMALL = (
    *("finetune.epochs=0", "finetune.accept_chance=true", "sensitivity.evaluations=4"),
    *("sensitivity.validate_subnets=2", "export.budgets=1", "polish.joint.epochs=0"),
    "polish.rounds=[{candidates: 1, epochs: 1, images: 64}]",
)
"""The network is not trained, because its training would take longer than the rest."""


def test_ssdlite_becomes_verified_exports(tmp_path: Path) -> None:
    boxed.write_notes(tmp_path / "notes", 100)
    torch.manual_seed(0)
    torch.save(anchored.ssdlite().state_dict(), tmp_path / "ssdlite.pt")
    assert checkouts.shell("python -m autotailor new project", tmp_path).returncode == 0
    shutil.copy(anchored.__file__, tmp_path / "project" / "mine.py")
    normalised = "--mean 0.5 0.5 0.5 --std 0.25 0.25 0.25"
    inspect = f"inspect mine:ssdlite --weights ../ssdlite.pt --data ../notes --resolution {SIDE} {normalised} --yaml"
    run = " ".join(["run model=ssdlite device=macs", *(f"'{each}'" for each in SMALL)])
    for command in (f"{inspect} > conf/model/ssdlite.yaml", run):
        done = checkouts.shell(f"python -m autotailor {command}", tmp_path / "project")
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    assert "anchors:ssdlite320" in (tmp_path / "project" / "conf" / "model" / "ssdlite.yaml").read_text()
    results = tmp_path / "project" / "results" / "ssdlite" / "macs"
    for name in ("largest", "budget_01"):
        said = json.loads((results / "exports" / name / "verification.json").read_text())
        assert said["passed"]
        assert {each["runtime"] for each in said["comparisons"]} == {"onnxruntime", "torch", "ncnn"}
    assert (results / "report.html").read_text().count('<img src="data:image/jpeg') == 4 * 4
