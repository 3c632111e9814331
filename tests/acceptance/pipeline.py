"""The whole pipeline in a small space with little training: minutes."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd

from autotailor.profiling import Store

ROOT = Path(__file__).parents[2]
MODEL = "resnet_digits"
SMALL = [
    "model.pretrain.epochs=1",
    "finetune.epochs=1",
    "finetune.accept_chance=true",  # one epoch teaches next to nothing
    "data.train_images=256",
    "data.evaluation_images=300",
    "model.space.resolution=[32]",
    "model.space.width=[0.5,1.0]",
    "model.space.blocks.Bottleneck.expand_ratio=[0.25]",
    "sensitivity.validate_subnets=3",
    "validate.subnets=3",
    "search.candidates=2",
    "pool.epochs=1",
    "search.population=10",
    "search.generations=5",
    "device.cores=[]",
    "device.threads=1",
    "device.warmup=1",
    "device.precision_target=0.9",
    "device.min_minutes=0",
    "validate.rounds=2",
    "device.drift=10",
    "device.energy_seconds=0",
]


def pipeline(
    directory: Path, home: Path, device: str, overrides: list[str], *targets: str
) -> subprocess.CompletedProcess[str]:
    """``snakemake --config model=resnet_digits device=...``, small."""
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "workflow" / "launch.py"), "--snakefile", str(ROOT / "Snakefile")),
            *("--profile", str(ROOT / "profiles" / "default"), *targets, "--config", f"model={MODEL}"),
            *(f"device={device}", f"overrides={json.dumps([*SMALL, *overrides])}"),
        ],
        cwd=directory,
        env={**os.environ, "HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    (directory / "output.txt").write_text(done.stdout + done.stderr)
    return done


def visits(directory: Path) -> Counter[str]:
    """How often each operator was measured, in as many SubNets, the anchor left out; the same in each run."""
    store = Store(directory / "luts")
    records = [
        (record.key, device.fingerprint.anchor)
        for device in store.devices()
        for record in store.records(device.fingerprint.id)
    ]
    return Counter(key for key, anchor in records if key != anchor)


def assert_finished(directory: Path, device: str) -> None:
    """Every operator is in the LUT; exports were measured on the device."""
    results = directory / "results" / MODEL / device
    operators, lut = pd.read_csv(results / "operators.csv"), pd.read_csv(results / "lut.csv")
    assert set(operators["id"]) <= set(lut["operator_id"])
    summary = pd.read_csv(results / "summary.csv")
    assert (summary["latency_ms_measured"] > 0).all()
    assert (summary["memory_mb_measured"] > 0).all()
    assert (results / "report.html").exists()
