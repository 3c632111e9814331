"""A pool's place: one process at a time takes it, and a killed one leaves a whole pool."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from autotailor.pool import replacing
from autotailor.pool.replacing import exchange, held, replaced, restore
from autotailor.serving import PoolError

SWAPS = [True, pytest.param(False, id="without an exchange of folders")]

HOLD = """
import pathlib, sys
from autotailor.pool.replacing import held
with held(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

KILLED = """
import os, pathlib, signal, sys
from autotailor.pool import replacing
folder, can_exchange, step = pathlib.Path(sys.argv[1]), sys.argv[2] == "True", int(sys.argv[3])

def then_die(call, number, steps=[0]):
    def wrapped(*arguments):
        result = call(*arguments)
        steps[0] += 1
        if steps[0] == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped

exchange = replacing.exchange if can_exchange else lambda one, other: False
replacing.exchange = then_die(exchange, step)
pathlib.Path.replace = then_die(pathlib.Path.replace, step)
with replacing.held(folder), replacing.replaced(folder) as new:
    new.mkdir()
    (new / "pool.txt").write_text("new")
"""


def pool_of(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "pool.txt").write_text(text)
    return folder


def put(folder: Path, text: str) -> None:
    with replaced(folder) as new:
        pool_of(new, text)


@pytest.fixture(params=SWAPS)
def can_exchange(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether folders are exchanged in one step."""
    if not request.param:
        monkeypatch.setattr(replacing, "exchange", lambda one, other: False)
    elif not exchange(pool_of(tmp_path / "one", ""), pool_of(tmp_path / "two", "")):
        pytest.skip("this file system cannot exchange two folders")
    return bool(request.param)


def test_two_folders_change_places(tmp_path: Path) -> None:
    one, two = pool_of(tmp_path / "one", "1"), pool_of(tmp_path / "two", "2")
    if not exchange(one, two):
        pytest.skip("this file system cannot exchange two folders")
    assert [(each / "pool.txt").read_text() for each in (one, two)] == ["2", "1"]
    with pytest.raises(OSError, match="No such file"):
        exchange(one, tmp_path / "three")


def test_a_pool_takes_the_place_of_another_one_or_of_none(tmp_path: Path, can_exchange: bool) -> None:
    folder = tmp_path / "new" / "pool"
    for text in ("1", "2", "3"):
        put(folder, text)
        assert (folder / "pool.txt").read_text() == text
        assert [path.name for path in folder.parent.iterdir()] == ["pool"]
    with pytest.raises(ZeroDivisionError), replaced(folder) as new:
        pool_of(new, f"{1 / 0}")
    assert (folder / "pool.txt").read_text() == "3"
    assert [path.name for path in folder.parent.iterdir()] == ["pool"]


def test_there_is_a_pool_at_every_moment(tmp_path: Path) -> None:
    one, two = pool_of(tmp_path / "one", ""), pool_of(tmp_path / "two", "")
    if not exchange(one, two):
        pytest.skip("this file system cannot exchange two folders")
    folder, is_over, missing = pool_of(tmp_path / "pool", "old"), threading.Event(), []

    def look() -> None:
        while not is_over.is_set():
            if not (folder / "pool.txt").exists():
                missing.append(folder)

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(100):
        put(folder, str(number))
    is_over.set()
    looking.join()
    assert missing == []


@pytest.mark.parametrize("step", [1, 2])
def test_a_killed_process_leaves_the_old_pool_or_the_new_one(tmp_path: Path, can_exchange: bool, step: int) -> None:
    folder = pool_of(tmp_path / "pool", "old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(can_exchange), str(step)], check=False)
    if can_exchange and step == 2:
        assert done.returncode == 0  # one step is all that there is
    else:
        assert done.returncode == -signal.SIGKILL
    if can_exchange:
        assert folder.is_dir()
    restore(folder)
    assert (folder / "pool.txt").read_text() in ("old", "new")
    put(folder, "newer")
    assert (folder / "pool.txt").read_text() == "newer"


def test_a_pool_that_was_set_aside_is_not_taken_from_a_process_at_work(tmp_path: Path) -> None:
    aside = tmp_path / ".pool.abcd1234" / replacing.ASIDE
    aside.parent.mkdir()
    pool_of(aside, "old")
    lock = replacing.Lock(tmp_path / f".pool{replacing.LOCK}")
    assert lock.take()
    with pytest.raises(PoolError, match="is being made or extended by"):
        restore(tmp_path / "pool")
    lock.release()
    restore(tmp_path / "pool")
    assert (tmp_path / "pool" / "pool.txt").read_text() == "old"


def test_sockets_of_the_old_pool_are_found_in_the_new_one(
    tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    folder = pool_of(Path("pool"), "old")
    with socket.socket(socket.AF_UNIX) as early, socket.socket(socket.AF_UNIX) as late:
        early.bind("pool/early")
        early.listen()
        number = Path("pool/early").stat().st_ino
        swap = replacing.exchange

        def slow(one: Path, other: Path) -> bool:
            late.bind("pool/late")  # a server that starts while the new pool is on its way
            late.listen()
            return swap(one, other)

        monkeypatch.setattr(replacing, "exchange", slow)
        put(folder, "new")
        assert (folder / "pool.txt").read_text() == "new"
        assert Path("pool/early").stat().st_ino == number  # by which a server knows its own socket
        for name in ("early", "late"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"pool/{name}")


def test_a_pool_that_is_held_is_refused_with_its_holder_until_a_killed_holder_frees_it(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "pool"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        said = f"{folder}: is being made or extended by process {other.pid} of .*: wait until it is done, or end it"
        with pytest.raises(PoolError, match=said), held(folder):
            raise AssertionError("two processes hold the pool")
        other.kill()
        other.wait()
    with held(folder):
        pass


def test_a_holder_that_is_soon_done_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with held(tmp_path / "pool"):
            is_held.set()
            may_end.wait(60)

    holding = threading.Thread(target=hold)
    holding.start()
    assert is_held.wait(60)
    threading.Timer(0.2, may_end.set).start()
    with held(tmp_path / "pool", wait_s=60):
        assert may_end.is_set()
    holding.join()
    assert f"is being made or extended by process {os.getpid()} of " in caplog.text
