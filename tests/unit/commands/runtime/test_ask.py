"""``autotailor runtime serve``, ``status``, ``infer`` and ``stop``, as processes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotailor.__main__ import main
from autotailor.artifacts import write_json
from autotailor.commands.runtime import ask
from autotailor.serving import Client
from pools import TinyPool, early_pool, tiny_pool
from served import Serving, serve_binary


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> TinyPool:
    serve_binary()
    return tiny_pool(tmp_path_factory.mktemp("served") / "pool")


@pytest.fixture(scope="module")
def address(pool: TinyPool) -> Iterator[str]:
    where = f"unix:{pool.folder.parent / 's'}"
    command = ["-m", "autotailor", "runtime", "serve", str(pool.folder), "--listen", where, "--deadline-ms", "50"]
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"serving 3 members of {pool.folder} at {where}; deadline 50 ms\n"
        yield where
        main(["runtime", "stop", "--at", where])
        assert process.stdout.read() == "stopped\n"
        assert process.wait(10) == 0


def test_a_picture_gets_the_class_that_the_member_says(
    pool: TinyPool, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = np.random.default_rng(5).normal(size=(3, 12, 12)).astype(np.float32)
    np.save(tmp_path / "p.npy", picture)
    assert main(["runtime", "infer", str(tmp_path / "p.npy"), "--at", address, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["answers"][0]
    assert found["member"] == "member_02"
    assert found["class"] == int(pool.logits("member_02", picture).argmax())
    assert main(["runtime", "infer", str(tmp_path / "p.npy"), "--at", address]) == 0
    assert f"class {found['class']} in " in capsys.readouterr().out


def test_the_exit_that_answered_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = early_pool(tmp_path / "pool")
    np.save(tmp_path / "p.npy", pool.picture(0))
    with Serving((str(serve_binary()),), pool.folder, "--thresholds", "60 %", "--deadline-ms", "1000") as server:
        where = ["--at", f"unix:{server.path}"]
        assert main(["runtime", "infer", str(tmp_path / "p.npy"), *where, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["answers"][0]
        assert (found["member"], found["exit"], found["class"]) == (
            "early",
            "stage2",
            pool.logits(1, pool.picture(0)).argmax(),
        )
        assert main(["runtime", "infer", str(tmp_path / "p.npy"), *where]) == 0
        assert f"by early, exit stage2, confidence {found['confidence']:.2f}" in capsys.readouterr().out


def test_an_answer_has_the_name_of_its_class_where_the_pool_is_named(
    pool: TinyPool, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = np.random.default_rng(5).normal(size=(3, 12, 12)).astype(np.float32)
    np.save(tmp_path / "p.npy", picture)
    logits = pool.logits("member_02", picture)
    named = tmp_path / "run" / "pool"
    shutil.copytree(pool.folder, named)
    command = ["runtime", "infer", str(tmp_path / "p.npy"), "--at", address, "--pool", str(named.parent)]

    def infer(classes: list[str], *options: str) -> tuple[int, str]:
        write_json(named / "pool.json", {"preparation": {"classes": classes}})
        code, said = main([*command, *options]), capsys.readouterr()
        return code, said.out + said.err

    names = [f"cat\x1b {number}" for number in range(logits.size)]
    number = int(logits.argmax())
    code, said = infer(names, "--json")
    assert (code, json.loads(said)["answers"][0]["class_name"]) == (0, names[number])
    assert f"class {number} (cat\\x1b {number}) in " in infer(names)[1]
    code, said = infer(names[:-1])
    assert code == 1
    assert f"its networks have {len(names) - 1} classes, and the server answers with {len(names)} numbers" in said


@pytest.mark.parametrize("task", ["regression", "embedding"])
def test_numbers_and_vectors_are_no_classes(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tiny_pool(tmp_path / "pool", task=task)
    picture = np.random.default_rng(5).normal(size=(3, 12, 12)).astype(np.float32)
    np.save(tmp_path / "p.npy", picture)
    wanted = pool.logits("member_02", picture)
    write_json(pool.folder / "pool.json", {"preparation": {"classes": ["a", "b", "c", "d"]}})
    with Serving((str(serve_binary()),), pool.folder, "--deadline-ms", "1000") as server:
        command = ["runtime", "infer", str(tmp_path / "p.npy"), "--at", f"unix:{server.path}"]
        assert main([*command, "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["answers"]
        assert np.allclose(found["outputs"], wanted, rtol=1e-4, atol=1e-5)
        assert not {"class", "class_name"} & found.keys()
        assert main(command) == 0
        said = capsys.readouterr().out
        assert f": {found['outputs'][0]:.6g}, " in said
        assert "class" not in said
        assert main([*command, "--pool", str(pool.folder)]) == 0
        assert f": a {found['outputs'][0]:.6g}, b " in capsys.readouterr().out


def test_a_pool_that_is_loaded_meanwhile_gives_no_member_a_name_of_the_other_pool(
    pool: TinyPool, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first status is that of a smaller pool, which the server served until just before the picture came."""
    status, asked = Client.status, []

    def earlier(client: Client) -> dict[str, Any]:
        found = status(client)
        asked.append(found)
        return found | {"members": [{"name": "gone"}]} if len(asked) == 1 else found

    monkeypatch.setattr(Client, "status", earlier)
    np.save(tmp_path / "p.npy", np.zeros((3, 12, 12), np.float32))
    assert main(["runtime", "infer", str(tmp_path / "p.npy"), "--at", address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"][0]["member"] == "member_02"


def test_the_status_is_there_for_people_and_for_programs(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "status", "--at", address]) == 0
    said = capsys.readouterr().out
    assert "member_02" in said
    assert "deadline_ms 50" in said
    assert main(["runtime", "status", "--at", address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["active"] == "member_02"
    assert main(["runtime", "status", "--at", address, "--metrics"]) == 0
    assert "# TYPE autotailor_missed_total counter" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"no array", b"\x80\x04N."])
def test_a_file_without_a_picture_is_named(
    address: str, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.npy"
    path.write_bytes(content)
    assert main(["runtime", "infer", str(path), "--at", address]) == 1
    assert f"{path}: holds no array" in capsys.readouterr().err


def test_an_array_of_another_shape_is_named(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "p.npy", np.zeros((4, 4)))
    assert main(["runtime", "infer", str(tmp_path / "p.npy"), "--at", address]) == 1
    assert "expected an array [C, H, W], or a batch of one, not [4, 4]" in capsys.readouterr().err


def test_a_batch_of_one_as_the_cards_prepare_makes_it_is_a_picture(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.zeros((1, 3, 4, 4)))
    assert ask.read_picture(tmp_path / "p.npy").shape == (3, 4, 4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
def test_a_picture_with_numbers_that_are_not_finite_is_refused(
    value: float, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = np.zeros((3, 8, 8))
    picture[1, 2, 3] = value
    np.save(tmp_path / "p.npy", picture)
    assert main(["runtime", "infer", str(tmp_path / "p.npy"), "--at", address]) == 1
    assert f"{tmp_path / 'p.npy'}: holds numbers that are not finite as float32" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "why"), [("none.npy", "No such file"), (".", "Is a directory")])
def test_a_picture_that_cannot_be_read_is_told_with_the_reason(
    name: str, why: str, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runtime", "infer", str(tmp_path / name), "--at", address]) == 1
    assert f"{tmp_path / name}: cannot be read ({why}" in capsys.readouterr().err


def test_a_picture_that_the_server_refuses_is_named(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "p.npy", np.zeros((5, 8, 8), np.float32))
    assert main(["runtime", "infer", str(tmp_path / "p.npy"), "--at", address]) == 1
    assert (
        f"{tmp_path / 'p.npy'}: infer: the picture has the size 5x8x8, and members take 3x8x8, 3x12x12"
        in capsys.readouterr().err
    )


def test_a_server_that_is_away_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "status", "--at", f"unix:{tmp_path / 'none'}"]) == 1
    assert "no server answers" in capsys.readouterr().err


def test_a_folder_without_a_pool_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, lack in ((tmp_path, "holds no pool.txt"), (tmp_path / "none", "is no folder")):
        assert main(["runtime", "serve", str(folder), "--listen", f"unix:{tmp_path / 's'}"]) == 1
        said = capsys.readouterr().err
        assert f"{folder}: {lack}; name the folder of a pool, or of a finished run whose pool was made" in said


def test_a_folder_without_sensors_is_named(pool: TinyPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["runtime", "serve", str(pool.folder), "--listen", f"unix:{tmp_path / 's'}"]
    assert main([*command, "--sensors", str(tmp_path)]) == 1
    assert f"--sensors {tmp_path}: holds neither proc nor sys" in capsys.readouterr().err
