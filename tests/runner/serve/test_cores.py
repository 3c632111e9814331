"""The cores of the server's threads: inferences on those of the measurements, preparation on all."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotailor.serving.files import INDEX, Index
from pools import TinyPool, tiny_pool
from served import Serving, refusal, serve_command

IMAGE = np.zeros((3, 12, 12), np.float32)
ALL, LAST = sorted(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def measured_on(pool: TinyPool, *cores: int) -> None:
    """Lets ``pool.txt`` say on which cores the pool was measured."""
    path = pool.folder / INDEX
    index = Index.parse(path.read_bytes())
    path.write_text(replace(index, cores=cores).text(), encoding="utf-8")


def cores_of(server: Serving) -> list[str]:
    """Which cores each thread may use, the first thread first."""
    folder = Path(f"/proc/{server.process.pid}/task")
    texts = [(folder / str(each.id) / "status").read_text() for each in psutil.Process(server.process.pid).threads()]
    return [line.split()[1] for text in texts for line in text.splitlines() if line.startswith("Cpus_allowed_list")]


def test_inferences_run_on_the_cores_of_the_measurements(pool: TinyPool) -> None:
    measured_on(pool, LAST)
    with Serving(serve_command("host"), pool.folder, "--deadline-ms", "1000") as server, server.client() as client:
        client.infer(IMAGE)
        assert client.status()["cores"] == [LAST]
        first, prepares = cores_of(server)
        assert first == str(LAST)
        assert (prepares == first) == (len(ALL) == 1)
        client.ask(6)  # another pool's threads have the same cores
        client.infer(IMAGE)
        assert cores_of(server) == [first, prepares]


@pytest.mark.parametrize(
    ("measured", "words", "found"),
    [((), (), ALL), ((LAST,), ("--cores", "any"), ALL), ((), ("--cores", str(LAST)), [LAST]), ((1000,), (), ALL)],
    ids=["nowhere", "any", "asked for", "missing"],
)
def test_other_cores_can_be_asked_for(
    command: tuple[str, ...], pool: TinyPool, measured: tuple[int, ...], words: tuple[str, ...], found: list[int]
) -> None:
    measured_on(pool, *measured)
    with Serving(command, pool.folder, *words) as server, server.client() as client:
        client.infer(IMAGE)
        assert client.status()["cores"] == found
        server.process.terminate()
        said = server.process.communicate(timeout=60)[1]
    assert ("do not exist here or may not be used" in said) == (measured == (1000,))


def test_a_missing_core_that_is_asked_for_is_an_error(command: tuple[str, ...], pool: TinyPool) -> None:
    for text in ("999", f"{LAST},999"):
        found = refusal(command, str(pool.folder), "--cores", text)
        assert (
            f"--cores {text}: core 999 does not exist here or may not be used; {len(ALL)} cores may be used: " in found
        )
        assert f"{','.join(map(str, ALL))}; name some of these, or any" in found


def test_what_is_no_list_of_cores_is_refused(command: tuple[str, ...], pool: TinyPool) -> None:
    for text in ("0,", "x", "0-3", "99999"):
        assert f"--cores {text}: expected numbers of cores" in refusal(command, str(pool.folder), "--cores", text)
    measured_on(pool, 5000)
    assert "the number of a core is 5000, expected a count of at most 1023" in refusal(command, str(pool.folder))
