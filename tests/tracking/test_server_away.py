"""A server that is killed during a run, or is away for the whole of it, or comes back while others publish.

No test asserts a time: a run that ends while its server is away has not waited for it.
"""

import signal

import pytest

from autotailor.tracking.models import KEY
from autotailor.tracking.reader import PROGRESS
from tracked_runs import BUDGETS, COUNTED, UNMEASURED, Project, doubles
from tracking_servers import wait_for

pytestmark = [pytest.mark.server, pytest.mark.timeout(3600)]
RULES = ["export", "measure", "polish", "report", "search"]
WAITS = "MLflow has not taken all of this run yet"
KILLS = 4


def expect_one_new_run(project: Project, before: set[str]) -> None:
    """All of one run stands on the server, once and finished, and its exports are the newest versions."""
    new = {run.info.run_id: run for run in project.runs() if run.info.run_id not in before}
    (parent,) = (run for run in new.values() if run.data.tags["autotailor.kind"] == "parent")
    children = [run for run in new.values() if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(new) == 1 + len(children)
    assert sorted(run.info.run_name for run in children) == RULES
    assert {run.info.status for run in new.values()} == {"FINISHED"}
    (measure,) = (run for run in children if run.info.run_name == "measure")
    for name in project.exports(COUNTED):
        versions = project.versions(COUNTED)[name]
        newest = max(versions, key=lambda version: int(version.version))
        assert newest.tags[KEY] == f"{measure.data.tags['autotailor.journal']}/{name}"
        assert float(newest.tags["accuracy_measured"]) == measure.data.metrics[f"{name}/accuracy_measured"]
        assert project.best(newest) in {str(version.version) for version in versions}
    assert doubles(project) == []


def begun(project: Project, rule: str) -> bool:
    """Whether a rule of the run of today has begun: its journal waits."""
    return any(project.journals.glob(f"*-{rule}-*.jsonl"))


def test_a_server_that_is_killed_during_a_run_gets_everything_once_when_it_is_back(project: Project) -> None:
    before = {run.info.run_id for run in project.runs()}
    run = project.start(COUNTED, (*UNMEASURED, BUDGETS.format(60)))
    wait_for(lambda: begun(project, "search") or run.poll() is not None, "the search")
    project.server.kill()
    wait_for(lambda: begun(project, "export") or run.poll() is not None, "the export, without a server")
    assert run.poll() is None, run.communicate()[0][-6000:]
    assert begun(project, "search")  # its journal waits for the server
    project.server.start()
    project.finish(run)
    project.wait_until_published()
    expect_one_new_run(project, before)


def test_what_no_server_took_is_published_once_though_the_publisher_is_killed_again_and_again(project: Project) -> None:
    before = {run.info.run_id for run in project.runs()}
    project.server.kill()
    said = project.finish(project.start(COUNTED, (*UNMEASURED, BUDGETS.format(70))))
    assert WAITS in said
    assert "python -m autotailor.tracking publish" in said
    assert {path.stem.split("-")[1] for path in project.journals.glob("*.jsonl")} >= set(RULES)
    wait_for(lambda: not list(project.journals.parent.glob("ready-*")), "the end of the recorder")
    assert project.publish() != 0
    project.server.start()
    assert {run.info.run_id for run in project.runs()} == before
    assert [project.publish(kill_after=5) for _ in range(KILLS)] == [-signal.SIGKILL] * KILLS
    assert project.publish() == 0
    assert not [path for path in project.journals.iterdir() if path.suffix != PROGRESS]
    expect_one_new_run(project, before)
