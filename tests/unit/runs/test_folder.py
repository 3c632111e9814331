"""A run whose artifacts do not belong together answers nothing."""

import json
import re
from pathlib import Path

import pytest

from autotailor.artifacts import ArtifactError
from autotailor.runs import RunError
from autotailor.runs.folder import OF_DEVICE, OF_MODEL, open_folder


def test_a_finished_run_is_opened_from_anywhere(finished_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished_run.parent)
    found = open_folder("host")
    assert (found.model, found.device, found.root) == ("resnet_digits", "host", finished_run.parents[2])
    assert found.configuration["model"]["name"] == "resnet_digits"


def test_results_may_be_a_link_to_another_disk(copied_run: Path, tmp_path: Path) -> None:
    """Configuration and pictures lie where the run was started, and not beside what the link leads to."""
    (tmp_path / "project" / "conf").mkdir(parents=True)
    (tmp_path / "project" / "results").symlink_to(copied_run.parents[1])
    named = tmp_path / "project" / "results" / copied_run.parent.name / copied_run.name
    found = open_folder(named)
    assert (found.path, found.root) == (copied_run, tmp_path / "project")
    (tmp_path / "link").symlink_to(copied_run)
    assert open_folder(tmp_path / "link").root == copied_run.parents[2]


@pytest.mark.parametrize("name", [*OF_MODEL, *OF_DEVICE])
def test_a_missing_artifact_is_named_with_its_rule_and_the_command(name: str, copied_run: Path) -> None:
    (copied_run.parent if name in OF_MODEL else copied_run).joinpath(name).unlink()
    rule = {**OF_MODEL, **OF_DEVICE}[name]
    command = rf"`autotailor run model=resnet_digits device=\w+ -- --forcerun {rule}`"
    with pytest.raises(RunError, match=rf"{name} \(of rule {rule}\) .*{command}"):
        open_folder(copied_run)


def test_a_rule_that_has_not_run_yet_needs_no_force(copied_run: Path) -> None:
    (copied_run / "summary.csv").unlink()
    (copied_run / "provenance" / "measure.json").unlink()
    with pytest.raises(RunError, match=r"`autotailor run model=resnet_digits device=\w+` in "):
        open_folder(copied_run)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("results/resnet_digits", "holds the runs host; name one, such as .*resnet_digits/host"),
        ("results", "holds the runs resnet_digits/host"),
        (".", "holds the runs results/resnet_digits/host"),
        ("results/nothing", "no such folder; name the folder of a finished run, results/MODEL/DEVICE"),
    ],
)
def test_a_folder_that_is_no_run_is_refused_with_the_right_one(place: str, words: str, finished_run: Path) -> None:
    with pytest.raises(RunError, match=words):
        open_folder(finished_run.parents[2] / place)


def test_artifacts_that_are_not_read_may_be_missing_or_changed(copied_run: Path) -> None:
    (copied_run / "summary.csv").unlink()
    (copied_run / "polish.json").write_text("{}")
    found = open_folder(copied_run, ("lut.csv", "configuration.json"))
    assert found.provenance.inputs.keys() == {"lut.csv", "configuration.json"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"device": 3}'])
def test_a_damaged_configuration_is_told_in_one_sentence(content: str, copied_run: Path) -> None:
    (copied_run / "configuration.json").write_text(content)
    with pytest.raises(
        RunError, match=r"configuration\.json: is cut or changed, and holds no configuration; run `autotailor run"
    ):
        open_folder(copied_run)


def test_a_folder_without_any_artifact_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not the folder of a run"):
        open_folder(tmp_path)


def test_an_artifact_that_somebody_changed_is_refused(copied_run: Path) -> None:
    with (copied_run / "candidates.csv").open("a") as stream:
        stream.write("\n")
    with pytest.raises(ArtifactError, match=r"candidates\.csv: its content is not what rule search wrote"):
        open_folder(copied_run)


def test_tables_of_an_older_network_are_refused(copied_run: Path) -> None:
    """The SuperNet was trained again, with the same configuration, and the run was interrupted behind it."""
    record = copied_run.parent / "provenance" / "sensitivity.json"
    document = json.loads(record.read_text())
    document["inputs"]["supernet.pt"] = "0" * 64
    record.write_text(json.dumps(document))
    with pytest.raises(
        RunError, match=r"rule sensitivity has read another supernet\.pt than .* out of date; run `autotailor run"
    ):
        open_folder(copied_run)


def test_artifacts_of_different_configurations_are_refused(copied_run: Path) -> None:
    record = copied_run / "provenance" / "search.json"
    document = json.loads(record.read_text())
    document["lineage"]["data"] = "0" * 12
    record.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match=re.escape("configuration section 'data'")):
        open_folder(copied_run)
