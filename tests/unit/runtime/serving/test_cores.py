"""Cores of threads, and of the server as a process."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from autotailor.__main__ import main
from autotailor.runtime import Client, PoolError
from autotailor.runtime.files import INDEX, Index
from autotailor.runtime.serving import cores
from pools import tiny_pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux pins threads")


def test_a_thread_uses_the_cores_that_are_named_and_others_do_not() -> None:
    mine = cores.usable()
    found = []

    def work() -> None:
        found.append(cores.use([min(mine)]))
        found.append(cores.usable())
        found.append(cores.use(()))
        found.append(cores.usable())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True, {min(mine)}, True, {min(mine)}]
    assert cores.usable() == mine


def test_cores_that_do_not_exist_change_nothing() -> None:
    mine = cores.usable()
    assert not cores.use([1000])
    assert cores.usable() == mine


def test_a_list_of_cores_is_read() -> None:
    assert (cores.parse("0,12"), cores.parse("any")) == ((0, 12), ())
    assert (cores.text_of((0, 12)), cores.text_of(())) == ("0,12", "any")
    for text in ("", "0,", "-1", "0-3", "none"):
        with pytest.raises(PoolError, match="expected numbers of cores"):
            cores.parse(text)


def test_cores_that_a_user_asks_for_must_be_there() -> None:
    mine = sorted(cores.usable())
    cores.check(mine)
    cores.check(())
    said = f"--cores {mine[0]},1000: core 1000 does not exist here or may not be used; {len(mine)} cores may be used: "
    with pytest.raises(PoolError, match=re.escape(f"{said}{cores.text_of(mine)}; name some of these, or any")):
        cores.check([mine[0], 1000])


def test_a_server_with_a_missing_core_that_was_asked_for_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, before = tiny_pool(tmp_path / "pool"), cores.usable()
    listen = f"unix:{tmp_path / 's'}"
    assert main(["runtime", "serve", str(pool.folder), "--listen", listen, "--cores", "999"]) == 1
    assert (
        f"--cores 999: core 999 does not exist here or may not be used; {len(before)} cores" in capsys.readouterr().err
    )
    assert cores.usable() == before


def affinities(process: psutil.Process) -> list[str]:
    """The cores of each thread, the first thread first."""
    status = [Path(f"/proc/{process.pid}/task/{each.id}/status").read_text() for each in process.threads()]
    return [next(line for line in text.splitlines() if line.startswith("Cpus_allowed_list")) for text in status]


@pytest.mark.parametrize(("measured", "words"), [("last", ()), ("missing", ()), ("missing", ("--cores", "{last}"))])
def test_the_server_runs_inferences_on_the_cores_of_the_measurements(
    tmp_path: Path, measured: str, words: tuple[str, ...]
) -> None:
    pool, last = tiny_pool(tmp_path / "pool"), max(cores.usable())
    index = Index.parse((pool.folder / INDEX).read_bytes())
    named = (last if measured == "last" else 1000,)
    (pool.folder / INDEX).write_text(replace(index, cores=named).text(), encoding="utf-8")
    listen = f"unix:{tmp_path / 's'}"
    command = ["-m", "autotailor", "runtime", "serve", str(pool.folder), "--listen", listen]
    command += [word.format(last=last) for word in words]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        with Client(listen) as client:
            status = client.status()
            first, *others = affinities(psutil.Process(process.pid))
            client.stop()
        said = process.stderr.read()
    is_pinned = measured == "last" or bool(words)
    assert status["cores"] == ([last] if is_pinned else sorted(cores.usable()))
    assert (first.split() == ["Cpus_allowed_list:", str(last)]) == (is_pinned or len(cores.usable()) == 1)
    assert ("cores 1000 do not exist here or may not be used" in said) == (not is_pinned)
    if is_pinned and len(cores.usable()) > 1:
        assert any(other != first for other in others)  # the thread that prepares members
