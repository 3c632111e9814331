"""A user's configuration that augments and mixes the images of each training, through Snakemake's rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
AUGMENTED = [
    "model.pretrain.augmentation.policy=trivialaugment",
    "model.pretrain.augmentation.mixup=0.2",
    "finetune.augmentation.policy=randaugment",
    "finetune.augmentation.magnitude=5",
    "finetune.augmentation.erasing=0.25",
    "finetune.augmentation.cutmix=1",
    "finetune.loss=loss_of_mine:shares_alone",
]
SMALL = [
    "data.train_images=128",
    "data.evaluation_images=50",
    "model.pretrain.epochs=1",
    "model.pretrain.threads=1",
    "finetune.epochs=1",
    "finetune.panel.every=0",
    "finetune.calibration.images=64",
    "finetune.accept_chance=true",  # one epoch teaches next to nothing
]
LOSS = """
from torch.nn import functional

def shares_alone(logits, labels, teacher, config):
    asked = config.augmentation
    assert (asked.policy, asked.magnitude, asked.erasing, asked.cutmix) == ("randaugment", 5, 0.25, 1)
    assert labels.shape == logits.shape
    return functional.cross_entropy(logits, labels)
"""


def test_a_configuration_augments_pretraining_and_finetuning(tmp_path: Path) -> None:
    """The loss stands in the user's folder and takes labels that are shares of classes only."""
    (tmp_path / "loss_of_mine.py").write_text(LOSS)
    supernet = Path("results/resnet_digits/supernet.pt")
    command = [
        sys.executable, str(ROOT / "workflow" / "launch.py"), "--snakefile", str(ROOT / "Snakefile"),
        "--profile", str(ROOT / "profiles" / "default"), str(supernet),
        "--config", "model=resnet_digits", f"overrides={json.dumps([*SMALL, *AUGMENTED])}",
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert (tmp_path / supernet).exists()
    for name in ("pretrain", "finetune"):
        history = pd.read_csv(tmp_path / "results" / "resnet_digits" / f"{name}_history.csv")
        assert len(history) == 1
        assert history["loss"].notna().all()
