"""One training on two nodes."""

from pathlib import Path

import pytest

from autotailor.artifacts import file_digest
from cluster import pipeline, servers
from cluster.pipeline import RESULTS
from cluster.slurm import Slurm

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]
WEIGHTS = RESULTS / "pretrained.pt"


def test_one_process_on_each_of_two_nodes_trains_what_two_processes_of_one_machine_train(
    cluster: Slurm, local: Path, tmp_path: Path
) -> None:
    """Two processes add up their gradients in another order than one process, whose weights therefore differ."""
    apart, together = tmp_path / "apart", tmp_path / "together"
    pipeline.run(
        apart, pipeline.BY_SLURM, str(WEIGHTS), overrides=["model.pretrain.nodes=2"], environment=cluster.environment
    )
    pipeline.run(together, pipeline.HERE, str(WEIGHTS), overrides=["model.pretrain.processes=2"])
    (job,) = cluster.jobs("pretrain")
    assert (job.state, job.fields["NumNodes"], job.fields["NodeList"]) == ("COMPLETED", "2", "n[1-2]")
    ran = [cluster.steps(job, node) for node in servers.NODES]
    assert ran[0] & ran[1], f"no step has run on both nodes: {ran}"
    assert file_digest(apart / WEIGHTS) == file_digest(together / WEIGHTS)
    assert file_digest(apart / WEIGHTS) != file_digest(local / WEIGHTS)
