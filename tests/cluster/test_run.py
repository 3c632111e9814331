"""A whole run whose rules are jobs of Slurm."""

from itertools import pairwise
from pathlib import Path

import pytest

from autotailor.artifacts import file_digest
from cluster import pipeline
from cluster.pipeline import DEVICE, RESULTS
from cluster.slurm import Slurm
from stages import STAGES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]
MEASURE = {"profile", "validate", "confirm", "measure"}
EQUAL = (
    *("pretrained.pt", "model.onnx", "space.json", "compiled.pt", "supernet.pt"),
    *("sensitivity.csv", "evaluations.csv", "accuracy_validation.csv", f"{DEVICE}/operators.csv"),
)
"""What does not depend on measured latencies, and therefore is the same in every run, bit by bit."""


@pytest.fixture(scope="module")
def finished(cluster: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run through Slurm has ended."""
    folder = tmp_path_factory.mktemp("finished")
    pipeline.run(folder, pipeline.BY_SLURM, environment=cluster.environment)
    return folder


def test_each_rule_is_one_job_on_one_of_two_nodes(finished: Path, cluster: Slurm) -> None:
    jobs = cluster.jobs()
    assert sorted(job.rule for job in jobs) == sorted([*STAGES, "polish"])
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert {job.fields["NodeList"] for job in jobs} == {"n1", "n2"}
    assert (finished / RESULTS / DEVICE / "report.html").is_file()


@pytest.mark.parametrize("name", EQUAL)
def test_jobs_make_what_this_machine_makes(finished: Path, local: Path, name: str) -> None:
    assert file_digest(finished / RESULTS / name) == file_digest(local / RESULTS / name)


def test_jobs_that_measure_hold_the_licence_of_the_device_and_have_their_node_alone(
    finished: Path, cluster: Slurm
) -> None:
    jobs = cluster.jobs()
    assert {job.rule: job.licence for job in jobs} == {
        job.rule: f"device_{DEVICE}:1" if job.rule in MEASURE else "" for job in jobs
    }
    assert {job.rule for job in jobs if job.fields["OverSubscribe"] == "NO"} == MEASURE
    times = sorted(job.time for job in jobs if job.licence)
    assert len(times) == len(MEASURE)
    assert all(end <= start for (_, end), (start, _) in pairwise(times))


def test_nothing_is_left_to_do_without_the_cluster(finished: Path) -> None:
    assert "Nothing to be done" in pipeline.run(finished, pipeline.HERE, "-n")
