"""The Dockerfile: what a look at it tells, and its steps executed without Docker (``dockerfile.py``)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import dockerfile
import documents
from dockerfile import ROOT

STAGES = dockerfile.stages()
GUIDE = ROOT / "docs" / "guides" / "install.md"


def values(stage: dockerfile.Stage, name: str) -> list[str]:
    return [step.value for step in stage.steps if step.name == name]


def test_hadolint_finds_nothing() -> None:
    program = str(Path(sys.executable).with_name("hadolint"))
    done = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_images_are_named_plainly_and_no_registry_is() -> None:
    assert [stage.image for stage in STAGES] == ["python:3.12-slim"] * 2
    assert [stage.image for stage in dockerfile.stages({"PYTHON": "3.11"})] == ["python:3.11-slim"] * 2
    assert "://" not in (ROOT / "Dockerfile").read_text()


def test_everything_that_is_copied_is_there_and_is_let_through() -> None:
    copied = [name for step in STAGES[0].steps if step.name == "COPY" for name in dockerfile.sources(step)[1]]
    assert sorted(copied) == sorted(dockerfile.ignored())
    assert all((ROOT / name).exists() for name in copied)


def test_the_versions_are_those_of_the_lock_but_for_what_only_cuda_needs() -> None:
    (installing,) = [value for value in values(STAGES[0], "RUN") if "--requirement" in value]
    assert "--constraint constraints.txt" in installing
    filtering = installing.partition(">")[0]
    kept = subprocess.run(filtering, shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    pinned = {line.partition("==")[0] for line in kept.stdout.splitlines() if re.match(r"\w.*==", line)}
    assert {"torch", "torchvision", "snakemake", "ncnn", "psycopg2-binary"} <= pinned
    assert not any(name.startswith(("nvidia", "cuda", "triton")) for name in pinned)


def test_a_container_is_no_root_and_is_the_command() -> None:
    assert values(STAGES[-1], "USER") == ["1000"]
    assert json.loads(values(STAGES[-1], "ENTRYPOINT")[0]) == ["autotailor"]
    assert values(STAGES[-1], "WORKDIR") == ["/project"]


def test_the_job_of_the_guide_is_one_of_this_image() -> None:
    (block,) = [block for block in documents.blocks(GUIDE) if block.language == "yaml"]
    pod = yaml.safe_load(block.code)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert str(pod["securityContext"]["runAsUser"]) == values(STAGES[-1], "USER")[0]
    assert container["args"][0] == "run"
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts["project"] == values(STAGES[-1], "WORKDIR")[0]
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}


def test_the_guide_names_the_arguments_with_their_defaults() -> None:
    rows = re.findall(r"^\| `([A-Z]+)` \| `(.*?)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert sorted(rows) == sorted(re.findall(r"^ARG ([A-Z]+)=(.*)$", text, re.MULTILINE))


@pytest.mark.sweep
@pytest.mark.timeout(3000)
def test_the_steps_make_an_environment_in_which_the_command_plans_a_run(tmp_path: Path) -> None:
    """PyTorch is that of the package index: the index of its other builds may not be reachable here."""
    image = dockerfile.Image(tmp_path / "image")
    for stage in dockerfile.stages({"TORCH": ""}):
        image.execute(stage)
    assert (tmp_path / "image" / "project").is_dir()
    (tmp_path / "image" / "source").rename(tmp_path / "gone")  # the final image has no sources
    command = json.loads(values(STAGES[-1], "ENTRYPOINT")[0])
    done = image.run([*command, "new", "."], "/project")
    assert done.returncode == 0, done.stderr
    planned = image.run([*command, "run", "-n"], "/project")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert re.search(r"^finetune +1$", planned.stdout + planned.stderr, re.MULTILINE)
    extras = image.run(["python", "-c", "import psycopg2, snakemake_executor_plugin_slurm, webdataset"], "/project")
    assert extras.returncode == 0, extras.stderr
