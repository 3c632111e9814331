"""Trainings that are killed in the middle: by the failure of a node, and because time or memory is used up.

Each of them goes on from its checkpoint, and ends with the weights of a training that nobody has killed.
"""

import re
from pathlib import Path

import pytest

from autotailor.artifacts import file_digest
from cluster import pipeline, servers
from cluster.pipeline import BY_SLURM, RESULTS
from cluster.slurm import Job, Slurm, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]
SUPERNET = RESULTS / "supernet.pt"
LOG = Path("logs") / pipeline.MODEL / "finetune.log"
EPOCHS, STEPS = 6, 4
LOSS = """
import os, time
import numpy as np
from torch.nn import functional

held = []

def hard_labels(logits, labels, teacher, config):
    time.sleep(float(os.environ.get("SECONDS_OF_A_STEP", 0)))
    held.append(np.ones(int(os.environ.get("MB_OF_A_STEP", 0)) * 2**20, np.uint8))
    return functional.cross_entropy(logits, labels)
"""
"""A loss of the user with which the training takes as long, and as much memory, as the environment says."""
TRAINING = (
    f"finetune.epochs={EPOCHS}",
    "finetune.workers=1",
    "finetune.loss=loss_of_mine:hard_labels",
    "finetune.checkpoint_seconds=0",
    "cluster.limit.mem_mb=32000",  # a node has 64000
)


def prepared(local: Path, folder: Path) -> Path:
    """A folder in which all is done that comes before the training."""
    pipeline.copied(local, folder)
    (folder / LOG).unlink()
    (folder / "loss_of_mine.py").write_text(LOSS)
    return folder


@pytest.fixture(scope="module")
def undisturbed(local: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Digest of what the training makes that nobody kills."""
    folder = prepared(local, tmp_path_factory.mktemp("undisturbed") / "run")
    pipeline.run(folder, pipeline.HERE, str(SUPERNET), overrides=TRAINING)
    return file_digest(folder / SUPERNET)


@pytest.fixture
def folder(local: Path, tmp_path: Path) -> Path:
    return prepared(local, tmp_path / "run")


def continued(folder: Path) -> int:
    """The number of the step at which the last attempt has begun; 1 is the first step of all."""
    found = re.search(r"continues at epoch (\d+), step (\d+)", (folder / LOG).read_text())
    assert found, (folder / LOG).read_text()
    return (int(found[1]) - 1) * STEPS + int(found[2])


def attempts(cluster: Slurm) -> list[Job]:
    """The jobs of the training in the newest run."""
    jobs = cluster.jobs("finetune")
    return [job for job in jobs if job.fields["JobName"] == jobs[-1].fields["JobName"]]


def train(folder: Path, cluster: Slurm, *overrides: str, **variables: str) -> list[Job]:
    """A training through Slurm; gives its jobs."""
    environment = {**cluster.environment, **variables}
    pipeline.run(folder, BY_SLURM, str(SUPERNET), overrides=[*TRAINING, *overrides], environment=environment)
    return attempts(cluster)


def test_a_job_that_has_used_up_its_time_goes_on_with_more(folder: Path, cluster: Slurm, undisturbed: str) -> None:
    """24 steps of 5 seconds are more than a minute and the half minute after which Slurm looks again."""
    jobs = train(folder, cluster, "cluster.rules.finetune.minutes=1", "cluster.growth=10", SECONDS_OF_A_STEP="5")
    assert [(job.state, job.fields["TimeLimit"]) for job in jobs] == [
        ("TIMEOUT", "00:01:00"),
        ("COMPLETED", "00:10:00"),
    ]
    assert (
        f"finetune: SLURM-job '{jobs[0].number}' failed, SLURM status is: 'TIMEOUT'"
        in (folder / pipeline.SAID).read_text()
    )
    assert continued(folder) > 1
    assert file_digest(folder / SUPERNET) == undisturbed


def test_a_job_that_has_used_up_its_memory_goes_on_with_more(folder: Path, cluster: Slurm, undisturbed: str) -> None:
    """The training alone takes less than the first attempt has, and more with what 24 steps hold."""
    jobs = train(
        folder, cluster, "cluster.rules.finetune.mem_mb=3000", "cluster.growth=3",
        SECONDS_OF_A_STEP="0.5", MB_OF_A_STEP="150",
    )  # fmt: skip
    assert [job.fields["MinMemoryNode"] for job in jobs] == ["3000M", "9000M"]
    assert [job.state for job in jobs] == ["FAILED", "COMPLETED"]
    assert "exceeded memory limit" in Path(jobs[0].fields["StdOut"]).read_text()
    assert continued(folder) > 1
    assert file_digest(folder / SUPERNET) == undisturbed


def test_a_job_whose_node_has_failed_goes_on_on_another_node(folder: Path, cluster: Slurm, undisturbed: str) -> None:
    environment = {**cluster.environment, "SECONDS_OF_A_STEP": "2"}
    with pipeline.started(folder, BY_SLURM, str(SUPERNET), overrides=TRAINING, environment=environment) as run:
        log = folder / LOG
        wait_for(lambda: log.exists() and "epoch 1 of" in log.read_text(), "the first epoch has ended")
        (job,) = attempts(cluster)
        failed = job.fields["NodeList"]
        assert failed in servers.NODES
        cluster.kill_node(failed)
        run.end()
    (again,) = attempts(cluster)
    assert again.number == job.number
    assert (again.state, again.fields["Restarts"]) == ("COMPLETED", "1")
    assert {failed, again.fields["NodeList"]} == set(servers.NODES)
    assert continued(folder) > STEPS
    assert file_digest(folder / SUPERNET) == undisturbed
    assert cluster.ask("sinfo", "--noheader", "--node", failed, "--format=%T").startswith("down")
