"""``autotailor runtime serve``, ``status``, ``infer`` and ``stop``, as processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from autotailor.__main__ import main
from pools import TinyPool, tiny_pool


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> TinyPool:
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
    assert "expected an array [C, H, W]" in capsys.readouterr().err


def test_a_server_that_is_away_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "status", "--at", f"unix:{tmp_path / 'none'}"]) == 1
    assert "no server answers" in capsys.readouterr().err


def test_a_folder_without_a_pool_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "serve", str(tmp_path), "--listen", f"unix:{tmp_path / 's'}"]) == 1
    assert "pool.txt" in capsys.readouterr().err
