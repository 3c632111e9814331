import errno
import os
from pathlib import Path

import pytest

from autotailor import artifacts
from autotailor.artifacts import ArtifactError, Provenance


def test_atomic_leaves_the_old_file_and_nothing_else_after_an_error(tmp_path: Path) -> None:
    target = tmp_path / "a" / "file.txt"
    with artifacts.atomic(target) as path:
        path.write_text("old")
    with pytest.raises(ZeroDivisionError), artifacts.atomic(target) as path:
        path.write_text(f"half {1 / 0}")
    assert target.read_text() == "old"
    assert list(target.parent.iterdir()) == [target]
    with pytest.raises(ArtifactError, match="nothing was written"), artifacts.atomic(target):
        pass


def test_a_killed_write_is_swept_by_a_later_one_but_not_one_at_work(tmp_path: Path) -> None:
    left, at_work, other = (tmp_path / name for name in (".a.txt.abcd1234", ".a.txt.efgh5678", ".b.txt.abcd1234"))
    for folder in (left, at_work, other):
        folder.mkdir()
    os.utime(left, (0, 0))
    os.utime(other, (0, 0))
    with artifacts.atomic(tmp_path / "a.txt") as path:
        path.touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [at_work.name, other.name, "a.txt"]


@pytest.mark.parametrize("kind", ["pipe", "device", "nested"])
def test_json_that_never_ends_or_is_no_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "pool.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_text("[" * 200_000)
    with pytest.raises(artifacts.ArtifactError, match=r"pool\.json: (is a pipe, a device|is not a JSON file)"):
        artifacts.read_json(path)


def test_json_carries_its_schema_version(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    artifacts.write_json(path, {"a": 1})
    assert artifacts.read_json(path) == {"schema_version": 1, "a": 1}
    path.write_text('{"schema_version": 99}')
    with pytest.raises(ArtifactError, match="schema version 99, expected 1"):
        artifacts.read_json(path)
    for content in (b"{", b"\xff\x00"):
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match="is not a JSON file"):
            artifacts.read_json(path)
    with pytest.raises(ArtifactError, match="no such artifact"):
        artifacts.read_json(tmp_path / "absent.json")


def _rule(directory: Path, rule: str, sections: dict[str, object], inputs: list[Path], name: str) -> Path:
    """Runs a made-up rule that writes one artifact."""
    provenance = Provenance(rule, sections, inputs)
    output = directory / name
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(f"{rule} {sections}")
    provenance.write(directory / "provenance" / f"{rule}.json", [output])
    return output


def test_lineages_are_inherited_and_data_sets_do_not_mix(tmp_path: Path) -> None:
    compiled = _rule(tmp_path, "compile", {"space": 1, "data": "digits"}, [], "compiled.pt")
    lut = _rule(tmp_path / "host", "profile", {"device": "host"}, [compiled], "lut.csv")
    exported = _rule(tmp_path / "host", "export", {"tolerance": 1}, [lut], "exports/largest/model.onnx")
    assert artifacts.read_lineage(exported)[1] == {
        key: artifacts.digest(value)
        for key, value in {"space": 1, "data": "digits", "device": "host", "tolerance": 1}.items()
    }
    with pytest.raises(ArtifactError, match=r"section 'data': the configuration has .*of rule profile has"):
        Provenance("search", {"data": "cifar10"}, [lut])
    other = _rule(tmp_path / "other", "compile", {"space": 2}, [], "compiled.pt")
    with pytest.raises(ArtifactError, match=r"section 'space'"):
        Provenance("search", {}, [compiled, other])


def test_a_changed_or_unknown_artifact_is_refused(tmp_path: Path) -> None:
    compiled = _rule(tmp_path, "compile", {"space": 1}, [], "compiled.pt")
    compiled.write_text("changed by hand")
    with pytest.raises(ArtifactError, match="not what rule compile wrote"):
        artifacts.read_lineage(compiled)
    (tmp_path / "own.pt").touch()
    with pytest.raises(ArtifactError, match="no record"):
        artifacts.read_lineage(tmp_path / "own.pt")


def test_inputs_of_one_name_are_all_recorded_and_all_count(tmp_path: Path) -> None:
    first, second = (tmp_path / "exports" / name for name in ("budget_01", "budget_02"))
    inputs = [_rule(folder, "export", {}, [], "model.onnx") for folder in (first, second)]
    inputs.append(_rule(tmp_path, "profile", {}, [], "lut.csv"))
    before = Provenance("measure", {}, inputs)
    assert list(before.inputs) == ["budget_01/model.onnx", "budget_02/model.onnx", "lut.csv"]
    inputs[0].write_text("other weights")
    Provenance("export", {}, []).write(first / "provenance" / "export.json", [inputs[0]])
    after = Provenance("measure", {}, inputs)
    assert after.lineage == before.lineage
    assert after.key != before.key


def test_the_key_follows_sections_and_contents(tmp_path: Path) -> None:
    compiled = _rule(tmp_path, "compile", {"space": 1}, [], "compiled.pt")
    key = Provenance("finetune", {"epochs": 1}, [compiled]).key
    assert Provenance("finetune", {"epochs": 1}, [compiled]).key == key
    assert Provenance("finetune", {"epochs": 2}, [compiled]).key != key
    compiled = _rule(tmp_path, "compile", {"space": 2}, [], "compiled.pt")
    assert Provenance("finetune", {"epochs": 1}, [compiled]).key != key


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space is left there; free some"),
        (OSError(errno.ENOSPC, "No space left on device", "results/x.onnx"), "results/x.onnx: no space is left"),
        (
            PermissionError(errno.EACCES, "Permission denied", "results/x"),
            "results/x: cannot be used (Permission denied)",
        ),
        (
            RuntimeError("[enforce fail at inline_container.cc:671] . unexpected pos 116416 vs 116304"),
            "no space is left",
        ),
        (OSError(errno.EROFS, "Read-only file system", "luts/x"), "luts/x: cannot be used (Read-only file system)"),
    ],
)
def test_a_disk_that_takes_no_file_is_named_with_the_remedy(error: Exception, told: str) -> None:
    assert told in artifacts.disk_trouble(error)
    assert "give the same command again" in artifacts.disk_trouble(error)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("[enforce fail at inline_container.cc:671] . unexpected pos 116416 vs 116304"),
    ],
)
def test_a_file_that_a_full_disk_cuts_off_is_named_and_leaves_the_old_one(error: Exception, tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_text("old")

    def write() -> None:
        with artifacts.atomic(tmp_path / "net.pt") as temporary:
            temporary.write_text("ne")
            raise error

    with pytest.raises(OSError, match=r"net\.pt or ") as raised:
        write()
    assert f"{tmp_path / 'net.pt'} or " in artifacts.disk_trouble(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["net.pt"]
    assert (tmp_path / "net.pt").read_text() == "old"


@pytest.mark.parametrize("error", [ValueError("No space left on device"), FileNotFoundError(errno.ENOENT, "no", "x")])
def test_other_errors_are_none_of_the_disks(error: Exception) -> None:
    assert artifacts.disk_trouble(error) == ""
