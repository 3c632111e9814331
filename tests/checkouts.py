"""A checkout in which a stranger works: the repository's own files, with less of everything in the configuration."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
FOLDERS = ("conf", "profiles", "src", "workflow")
FILES = ("README.md", "Snakefile", "pyproject.toml")
QUICK = {
    "conf/device/host.yaml": {
        "precision_target": 0.5,
        "drift": 10,  # other tests run beside this one
        "min_minutes": 0,
        "max_minutes": 3.0,
        "energy_seconds": 0,
    },
    "conf/search/default.yaml": {"population": 20, "generations": 5, "candidates": 3, "evaluations": 2},
    "conf/finetune/mixed.yaml": {"epochs": 3},
    "conf/polish/default.yaml": {
        "joint": {"epochs": 1, "lr_share": 2.0},
        "rounds": [{"candidates": 2, "epochs": 1}, {"candidates": 1, "epochs": 1}],
    },
    "conf/config.yaml": {
        "sensitivity": {"validate_subnets": 3, "evaluations": 6},
        "validate": {"subnets": 3, "rounds": 2, "attempts": 1},
        "confirm": {"rounds": 2, "seconds": 0.1, "repeated": 2},
        "measure": {"seconds": 0.2},
        "export": {"budgets": 2},
    },
}
"""What the test changes in its checkout's configuration: less of everything, nothing else."""


def make(project: Path) -> Path:
    """Copies the repository without its environment and results, with ``QUICK`` in its configuration.

    Compiled modules are copied too, which processes would make again, but not those that a process writes just now.
    """
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("*.pyc.*"))
    for file in FILES:
        shutil.copy2(ROOT / file, project / file)
    for name, changes in QUICK.items():
        shorten(project / name, changes)
    return project


def shorten(path: Path, changes: dict[str, object]) -> None:
    """Changes keys of a configuration file in place and keeps the rest, comments excepted."""
    text = path.read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    for key, value in changes.items():
        content[key] = {**content[key], **value} if isinstance(value, dict) else value
    head = "".join(line for line in text.splitlines(True) if line.startswith("# @package"))
    path.write_text(head + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def shell(command: str, project: Path) -> subprocess.CompletedProcess[str]:
    """Runs one line of the README as a person does who stands in the checkout with the environment active."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(project / "src"),
    }
    return subprocess.run(
        ["bash", "-c", command], cwd=project, env=environment, capture_output=True, text=True, timeout=800, check=False
    )
