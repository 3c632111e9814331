"""A rule by hand: what its script is given is what Snakemake gives it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
UNTRAINED = ["model=resnet_digits", "device=host", "overrides=[model.weights=null]"]


def by_hand(directory: Path, *arguments: str, typed: str = "") -> str:
    """What a Python says that goes on interactively behind a rule by hand, and is typed into."""
    command = [sys.executable, "-i", str(ROOT / "workflow" / "by_hand.py"), *arguments]
    done = subprocess.run(command, cwd=directory, input=typed, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_the_snakemake_object_of_a_rule_is_there_to_look_at(tmp_path: Path) -> None:
    look = "print(snakemake.wildcards.device, snakemake.params.sections['search']['population'], snakemake.input.lut)"
    said = by_hand(tmp_path, "search", "--config", "overrides=[search.population=10]", typed=look)
    assert "input.lut: results/resnet_digits/host/lut.csv (missing)" in said
    assert "output.pareto: results/resnet_digits/host/pareto.csv\n" in said
    assert "host 10 results/resnet_digits/host/lut.csv" in said
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / ".snakemake" / "runs.lock").exists()


def test_a_race_gets_the_threads_of_the_joint_training_before_it(tmp_path: Path) -> None:
    wide = "overrides=[workers=1,finetune.threads=2,polish.joint.epochs=1]"
    said = by_hand(tmp_path, "polish", "--config", wide, typed="print('threads:', snakemake.threads)")
    assert said.endswith("threads: 2\n")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the rule compile was run by hand."""
    directory = tmp_path_factory.mktemp("by_hand")
    said = by_hand(directory, "compile", "--config", *UNTRAINED, "--run", typed="print(type(this).__name__)")
    assert said.endswith("Stage\n")  # names of the script stay
    return directory


def test_a_rule_by_hand_makes_what_the_rule_makes(compiled: Path, tmp_path: Path) -> None:
    command = [str(SNAKEMAKE), "--directory", str(tmp_path), "--no-hooks", "--until", "compile", "--config", *UNTRAINED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("space.json", "provenance/compile.json"):
        hand, rule = (json.loads((d / "results" / "resnet_digits" / name).read_text()) for d in (compiled, tmp_path))
        assert hand == rule


def test_the_next_rule_finds_it(compiled: Path) -> None:
    said = by_hand(compiled, "enumerate", "--config", *UNTRAINED, "--run", typed="print(len(net.space.variables))")
    assert "input.supernet: results/resnet_digits/compiled.pt\n" in said
    assert int(said.split()[-1]) > 5
    assert (compiled / "results" / "resnet_digits" / "host" / "operators.csv").exists()
