"""``pip install .`` into a new environment, then ``autotailor new`` and ``autotailor run``, without the clone."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import checkouts
import documents
import strangers
from autotailor import artifacts

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(3000)]
PARTS = (
    "src",
    "workflow",
    "conf",
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "requirements.lock",
)
SMALL = [
    "model.pretrain.epochs=1",
    "finetune.epochs=1",
    "finetune.accept_chance=true",  # one epoch teaches next to nothing
    "data.train_images=512",
    "data.evaluation_images=200",
    "model.space.resolution=[24]",
    "model.space.width=[]",
    "device.min_minutes=0",
    "device.max_minutes=5",
    "device.precision_target=0.5",
    "device.drift=10",
    "device.energy_seconds=0",
]
QUICK = [
    "finetune.panel.every=0",
    "finetune.calibration.images=128",
    "search.population=20",
    "search.generations=5",
    "search.evaluations=2",
    "sensitivity.evaluations=6",
    "sensitivity.validate_subnets=4",
    "polish.joint.epochs=0",
    "polish.rounds=[{candidates:2,epochs:1},{candidates:1,epochs:1}]",
    "validate.subnets=4",
    "validate.rounds=2",
    "validate.attempts=1",
    "measure.seconds=0.2",
]


class Installation:
    """An environment with autotailor, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "venv" / "bin"

    def shell(self, command: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs one line as a user does in whose shell the environment is active, and no other."""
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        clones = str(Path(sys.executable).parent)
        paths = [path for path in environment["PATH"].split(os.pathsep) if path != clones]
        environment["PATH"] = os.pathsep.join([str(self.bin), *paths])
        return subprocess.run(
            ["bash", "-c", command],
            cwd=where or self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, command: str, where: Path | None = None) -> str:
        """Runs one line that must succeed; gives what it printed."""
        done = self.shell(command, where)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """autotailor in a new environment; the sources are gone. uv stands for pip: it has the libraries in its cache."""
    installation = Installation(tmp_path_factory.mktemp("installed"))
    sources = installation.folder / "sources"
    sources.mkdir()
    for name in PARTS:
        copy = shutil.copytree if (checkouts.ROOT / name).is_dir() else shutil.copy2
        copy(checkouts.ROOT / name, sources / name)
    installation.must(f"{sys.executable} -m venv venv")
    pip = f"{sys.executable} -m uv pip install --python {installation.bin / 'python'}"
    installation.must(f"{pip} --constraint requirements.lock .", sources)
    shutil.rmtree(sources)
    return installation


@pytest.fixture(scope="module")
def demo(installed: Installation) -> Path:
    installed.must("autotailor new demo")
    return installed.folder / "demo"


def test_the_command_is_that_of_the_new_environment(installed: Installation) -> None:
    where = installed.must("python -c 'from autotailor.project import places; print(places.ROOT)'").strip()
    assert where == str(next(installed.folder.glob("venv/lib/python*/site-packages")) / "autotailor" / "share")


def test_the_installed_package_runs_a_project_to_the_end(installed: Installation, demo: Path) -> None:
    settings = " ".join(f"'{setting}'" for setting in (*SMALL, *QUICK))
    said = installed.must(f"autotailor run {settings}", demo)
    results = demo / "results" / "resnet_digits" / "host"
    assert str(results / "report.html") in re.sub(r"\s", "", said)
    assert (pd.read_csv(results / "summary.csv")["latency_ms_measured"] > 0).all()
    assert len(list(results.glob("exports/*/verification.json"))) == 4
    lineage, configuration = (
        json.loads((results / f).read_text()) for f in ("provenance/polish.json", "configuration.json")
    )
    del configuration["polish"]["joint"]
    assert lineage["lineage"]["polish"] == artifacts.digest(configuration["polish"])
    assert "Nothing to be done" in installed.must(f"autotailor run -n {settings}", demo)
    assert sorted(path.name for path in installed.folder.iterdir()) == ["demo", "venv"]


def test_an_own_network_and_own_pictures_take_the_guides_two_commands(installed: Installation, demo: Path) -> None:
    strangers.write_photos(demo / "photos")
    strangers.export(strangers.train(strangers.network(), demo / "photos"), demo / "models" / "mine.onnx")
    blocks = documents.blocks(checkouts.ROOT / "docs" / "guides" / "install.md")
    (told,) = [documents.commands(block.code) for block in blocks if "models/mine.onnx --data photos" in block.code]
    inspect, run = told
    installed.must(inspect, demo)
    settings = " ".join(f"'{setting}'" for setting in ("finetune.epochs=1", *QUICK))
    installed.must(f"{run.replace('device=host', 'device=macs')} {settings}", demo)
    assert "mine" in (demo / "results" / "mine" / "macs" / "report.html").read_text(encoding="utf-8")


def test_a_missing_network_is_named_with_its_place(installed: Installation) -> None:
    installed.must("autotailor new empty")
    done = installed.shell("autotailor run model=mine device=host", installed.folder / "empty")
    assert done.returncode == 1
    assert "model.source: no file" in done.stderr
    assert "models/mine.onnx; put it there" in done.stderr
