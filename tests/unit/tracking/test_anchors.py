"""A store that was moved."""

from pathlib import Path

from autotailor.tracking.store import Store
from stored_runs import RUN, opened, record


def _artifacts(store: Store) -> dict[str, str]:
    """Content of each run's artifacts, by name."""
    found = {}
    for run in store.client.search_runs([store.experiment(RUN.model)], "tags.`autotailor.kind` = 'child'"):
        for artifact in store.client.list_artifacts(run.info.run_id):
            found[artifact.path] = Path(store.client.download_artifacts(run.info.run_id, artifact.path)).read_text()
    return found


def test_a_moved_store_keeps_its_artifacts_and_new_ones_lie_beside_it(tmp_path: Path, old: Path) -> None:
    new = tmp_path / "a" / "new place"
    record(opened(old), old, "search", "a\n1\n")
    new.parent.mkdir()
    old.rename(new)
    store = opened(new)
    assert _artifacts(store) == {"search.csv": "a\n1\n"}
    record(store, new, "measure", "b\n2\n")
    assert not old.exists()
    assert sorted(path.name for path in (new / "mlruns").rglob("*.csv")) == ["measure.csv", "search.csv"]


def test_the_artifacts_of_somebody_else_stay_where_they_are(old: Path) -> None:
    store = opened(old)
    elsewhere = (old / "elsewhere").as_uri()
    other = store.client.create_experiment("theirs", artifact_location=elsewhere)
    assert opened(old).client.get_experiment(other).artifact_location == elsewhere
