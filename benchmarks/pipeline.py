"""Runs the workflow of this checkout in another folder, for benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def snakemake(directory: Path, model: str, device: str, overrides: Sequence[str], targets: Sequence[str] = ()) -> None:
    """Makes files below ``directory``; rules that are finished there are not run again.

    Args:
        directory: where ``results/`` lies or is made.
        model: a file of ``conf/model``.
        device: a file of ``conf/device``.
        overrides: ``KEY=VALUE`` of the configuration.
        targets: files to make, relative to ``directory``; without them the whole pipeline runs.

    Raises:
        subprocess.CalledProcessError: a rule failed; its messages were printed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    profile = ["--snakefile", str(ROOT / "Snakefile"), "--profile", str(ROOT / "profiles" / "default")]
    config = ["--config", f"model={model}", f"device={device}", f"overrides={json.dumps(list(overrides))}"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    launch = [sys.executable, str(ROOT / "workflow" / "launch.py"), *profile, "--quiet", "rules", *config]
    asked = ["--", *targets] if targets else []
    subprocess.run([*launch, *asked], cwd=directory, check=True, env={**os.environ, "PATH": path})
