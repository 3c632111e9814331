"""The content of a model file is that of its weights too, wherever the weights that compiling reads lie."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from autotailor import artifacts, contents


def write(folder: Path, location: str = "weights.bin") -> Path:
    """A model of one Add, whose weight lies in another file."""
    weight = numpy_helper.from_array(np.ones((1, 3, 4, 4), dtype=np.float32), "w")
    weight.data_location = TensorProto.EXTERNAL
    weight.ClearField("raw_data")
    weight.external_data.add(key="location", value=location)
    tensor = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3, 4, 4)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", tensor[:1], tensor[1:], [weight])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def save(path: Path, value: float) -> None:
    path.write_bytes(np.full((1, 3, 4, 4), value, dtype=np.float32).tobytes())


def test_other_external_weights_are_another_content(tmp_path: Path) -> None:
    model = write(tmp_path)
    save(tmp_path / "weights.bin", 1.0)
    before = contents.network_content(str(model))
    save(tmp_path / "weights.bin", 2.0)
    assert contents.network_content(str(model)) != before


def test_weights_behind_links_count(tmp_path: Path) -> None:
    """The hub's cache: files lie under ``blobs``, a snapshot links to them, and compiling follows the links."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    write(blobs).rename(blobs / "1")
    save(blobs / "2", 1.0)
    (snapshot / "model.onnx").symlink_to(blobs / "1")
    (snapshot / "weights.bin").symlink_to(blobs / "2")
    before = contents.network_content(str(snapshot / "model.onnx"))
    save(blobs / "2", 2.0)
    assert contents.network_content(str(snapshot / "model.onnx")) != before


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "a\0b", "x" * 5000])
def test_a_name_that_leads_elsewhere_is_not_read(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    model = write(folder, location)
    save(tmp_path / "secret.bin", 1.0)
    before = contents.network_content(str(model))
    save(tmp_path / "secret.bin", 2.0)
    assert contents.network_content(str(model)) == before
    assert onnx.load(str(model), load_external_data=False).graph.initializer[0].name == "w"


@pytest.mark.parametrize("key", ["teacher", "loss"])
def test_the_code_of_a_teacher_and_of_a_loss_counts(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "code_of_mine.py"
    digests = []
    for constant in (1, 2):
        module.write_text(f"def mine(*given):\n    return {constant} + len(given)\n")
        digests.append(contents.training_content({key: "code_of_mine:mine"}))
    assert all(digest[key] for digest in digests)
    assert digests[0] != digests[1]
    assert contents.training_content({"teacher": None, "loss": None}) == {"teacher": None, "loss": None}


def test_other_recordings_of_a_stage_before_the_task_are_another_content(tmp_path: Path) -> None:
    first = {"name": "first", "kind": "series", "root": str(tmp_path), "labels": False}
    section = {"teacher": None, "loss": None, "stages": [{"data": first, "images": 10}]}
    digests = []
    for numbers in ("1", "2"):
        for name in ("a", "b"):
            (tmp_path / f"{name}.csv").write_text(f"x\n{numbers}\n{numbers}\n")
        digests.append(contents.training_content(section))
    assert digests[0].keys() == digests[1].keys() == {"teacher", "loss", "stage_0"}
    assert digests[0] != digests[1]


def test_results_that_were_swapped_with_their_dates_kept_are_altered(tmp_path: Path) -> None:
    swapped = [tmp_path / "exports" / name / "model.onnx" for name in ("budget_01", "budget_02")]
    for path in swapped:
        path.parent.mkdir(parents=True)
        path.write_text(path.parent.name)
        os.utime(path, (1000.0, 1000.0))
    removed = tmp_path / "summary.csv"
    removed.write_text("")
    record = tmp_path / "provenance" / "export.json"
    artifacts.Provenance("export", {}, []).write(record, [*swapped, removed])
    removed.unlink()
    assert contents.altered([tmp_path, tmp_path / "missing"]) == {}
    first, second = swapped
    first.rename(tmp_path / "first")
    second.rename(first)
    (tmp_path / "first").rename(second)
    assert {path.stat().st_mtime for path in swapped} == {1000.0}, "no date tells"
    found = contents.altered([tmp_path])
    assert found == dict.fromkeys(swapped, "export")
    assert "budget_01/model.onnx of rule export" in contents.altered_sentence(found)


def test_members_that_a_pool_has_got_since_are_no_change_of_its_rule(tmp_path: Path) -> None:
    pool = tmp_path / "pool.json"
    pool.write_text("")
    artifacts.Provenance("make_pool", {}, []).write(tmp_path / "provenance" / "make_pool.json", [pool])
    pool.write_text("more members")
    assert contents.altered([tmp_path]) == {}
