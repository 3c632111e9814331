"""Two runs want to measure on one device."""

from itertools import pairwise
from pathlib import Path

import pytest

from cluster import pipeline
from cluster.pipeline import BY_SLURM, DEVICE, RESULTS
from cluster.slurm import Slurm, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]
LUT = RESULTS / DEVICE / "lut.csv"


def test_two_runs_never_measure_on_one_device_at_once(local: Path, cluster: Slurm, tmp_path: Path) -> None:
    """Somebody else's job holds the licence first, until the jobs of both runs wait for the licence on idle nodes."""
    other = cluster.ask(
        "sbatch", "--parsable", f"--licenses=device_{DEVICE}:1", "--output=/dev/null", "--wrap", "sleep 3600"
    ).strip()
    folders = [pipeline.copied(local, tmp_path / name) for name in ("one", "two")]
    first, second = (
        pipeline.started(folder, BY_SLURM, str(LUT), environment=cluster.environment) for folder in folders
    )
    with first as one, second as two:
        wait_for(lambda: len(cluster.jobs("profile")) == 2, "both runs submit the rule profile")
        wait_for(
            lambda: all(job.fields["Reason"] in ("Licenses", "Priority") for job in cluster.jobs("profile")),
            "both jobs wait for the licence",
        )
        assert {job.state for job in cluster.jobs("profile")} == {"PENDING"}
        cluster.ask("scancel", other)
        one.end()
        two.end()
    assert all((folder / LUT).is_file() for folder in folders)
    times = sorted(job.time for job in cluster.jobs() if job.licence)
    assert len(times) == 3
    assert all(end <= start for (_, end), (start, _) in pairwise(times))
