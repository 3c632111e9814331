"""A pool that runs in C++: what members compute, switches, memory, settings."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from autotailor.serving.files import Index
from pools import SIDES, TinyPool, tiny_pool
from served import LATE, METRICS, NOTHING_FITS, SWITCHED, Refused, Serving

NAMES = tuple(f"member_{number:02}" for number in range(len(SIDES)))
RELAXED = ("--deadline-ms", "1000")


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def picture(side: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(3, side, side)).astype(np.float32)


def resized(image: npt.NDArray[np.float32], side: int) -> npt.NDArray[np.float32]:
    made = torch.nn.functional.interpolate(
        torch.from_numpy(image)[None], (side, side), mode="bilinear", antialias=True, align_corners=False
    )
    return np.asarray(made[0].numpy())


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_each_member_computes_what_its_slices_say(command: tuple[str, ...], tmp_path: Path, precision: str) -> None:
    pool = tiny_pool(tmp_path / "pool", precision)
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        for number, (name, side) in enumerate(zip(NAMES, SIDES, strict=True)):
            assert client.set(pin=name)["pin"] == name
            for size in {*SIDES}:  # the picture may have the size of another member's input
                image = picture(size, number)
                answer = client.infer_with(number, image)
                expected = pool.logits(name, image if size == side else resized(image, side))
                np.testing.assert_allclose(answer.outputs, expected, atol=1e-4)
                assert answer.latency_ms > 0
                assert answer.cpu_ms > 0


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_switches_leave_the_outputs_and_the_memory_as_they_were(
    command: tuple[str, ...], pool: TinyPool, count: int
) -> None:
    images = {number: picture(SIDES[number]) for number in (1, 2)}
    expected = {number: pool.logits(NAMES[number], image) for number, image in images.items()}
    is_plain = len(command) == 1 and "sanitized" not in command[0]
    heavy = with_peaks(
        pool.folder, (1 << 20, 4 << 20, 6 << 20)
    )  # so that each switch frees one member and makes another
    with Serving(command, heavy, *RELAXED, "--memory-mb", "8") as server, server.client() as client:

        def switch(times: int) -> None:
            for turn in range(times):
                number = 1 + turn % 2
                client.set(pin=NAMES[number])
                answer = client.infer_with(number, images[number])
                np.testing.assert_allclose(answer.outputs, expected[number], atol=1e-4)

        switch(50)
        before, descriptors = server.memory_bytes(), server.descriptors()
        switch(count)
        time.sleep(0.1)
        if is_plain:  # QEMU and the sanitizers keep memory of their own
            assert server.memory_bytes() - before < 1 << 20
        assert server.descriptors() == descriptors
        counters = client.status()["counters"]
        assert counters["switches"] >= count + 49
        assert counters["preparations"] >= count + 49


def test_a_switch_is_announced_once(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        image = picture(SIDES[2])
        assert client.infer(image).member == 2
        client.set(pin=NAMES[0])
        assert client.infer(image).flags == SWITCHED
        assert client.infer(image).flags == 0


def test_the_most_accurate_member_that_meets_the_deadline_runs(command: tuple[str, ...], pool: TinyPool) -> None:
    slow = with_latencies(pool.folder, 1e3)  # the table says 20, 35 and 65 s
    with Serving(command, slow, "--deadline-ms", "40000") as server, server.client() as client:
        assert client.status()["active"] == NAMES[1]
        first = client.infer(picture(SIDES[0]))
        assert (first.member, first.flags) == (1, 0)
        late = client.infer(picture(SIDES[0]), 1e-6)
        assert late.flags & NOTHING_FITS
        assert late.flags & LATE
        assert late.member == 0
        counters = client.status()["counters"]
        assert counters["missed"] == 1
        assert counters["nothing_fits"] >= 1
        assert "nothing fits" in {event["event"] for event in counters["events"]}


def test_it_learns_that_inferences_are_faster_and_goes_up(command: tuple[str, ...], pool: TinyPool) -> None:
    slow = with_latencies(pool.folder, 1e3)
    with Serving(command, slow, "--deadline-ms", "25000", "--dwell-s", "0") as server, server.client() as client:
        assert client.status()["active"] == NAMES[0]
        client.infer_with(2, picture(SIDES[0]))
        status = client.status()
        assert status["load"]["slowdown"] < 0.5
        assert "up" in {event["event"] for event in status["counters"]["events"]}


def test_beyond_the_memory_limit_no_member_is_chosen(command: tuple[str, ...], pool: TinyPool) -> None:
    heavy = with_peaks(pool.folder, (1 << 20, 1 << 20, 9 << 20))
    with Serving(command, heavy, *RELAXED, "--memory-mb", "8") as server, server.client() as client:
        image = picture(SIDES[0])
        assert client.infer(image).member == 1
        assert "memory limit" in client.status()["broken"][NAMES[2]]
        with pytest.raises(Refused, match=r"member_02.*memory limit"):
            client.set(pin=NAMES[2])
        assert client.infer(image).member == 1
    done = subprocess.run([*command, str(heavy), "--memory-mb", "0.5"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "member_00" in done.stderr
    assert "raise the limit" in done.stderr


def test_under_a_tight_limit_the_smallest_runs_while_another_member_is_prepared(
    command: tuple[str, ...], pool: TinyPool
) -> None:
    heavy = with_peaks(pool.folder, (1 << 20, 4 << 20, 6 << 20))
    with Serving(command, heavy, *RELAXED, "--memory-mb", "8") as server, server.client() as client:
        for number in (1, 2, 1, 2):
            client.set(pin=NAMES[number])
            client.infer_with(number, picture(SIDES[0]))
            assert client.status()["loaded"] == [NAMES[0], NAMES[number]]


def test_a_file_that_is_cut_off_meanwhile_costs_the_members_that_are_not_there_yet(
    command: tuple[str, ...], pool: TinyPool
) -> None:
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        image = picture(SIDES[0])
        assert client.infer(image).member == 2
        weights = pool.folder / "weights.bin"
        with weights.open("r+b") as stream:
            stream.truncate(weights.stat().st_size - 4)
        client.set(pin=NAMES[1])
        for _ in range(500):
            assert client.infer(image).member == 2
            if (status := client.status())["broken"]:
                break
            time.sleep(0.01)
        assert "weights.bin: has been cut off while it was in use" in status["broken"][NAMES[1]]
        assert status["settings"]["pin"] is None
        client.set(pin=NAMES[0])
        assert client.infer(image).member == 0


def test_settings_are_checked_and_taken_together(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *RELAXED) as server, server.client() as client:
        before = client.set()
        for wrong, message in (
            ({"deadline_ms": -1}, "deadline_ms is -1, expected a positive"),
            ({"quantile": 2}, "quantile is 2"),
            ({"deadline_ms": "1"}, "deadline_ms is no number"),
            ({"pin": "member_77"}, "no member member_77"),
            ({"pin": ""}, "pin is the name of a member"),
            ({"pin": "../../etc/passwd"}, "no member"),
            ({"rate": 5, "folder": "x"}, "folder is no setting"),
            ({"battery": 1.5}, "battery"),
            ({"quota": 0}, "quota is 0"),
            ({"deadline_ms": None}, "deadline_ms is no number"),
        ):
            with pytest.raises(Refused, match=message):
                client.set(**wrong)
            assert client.set() == before
        assert client.set(rate=5, quota=0.5, battery=0.25, pin=NAMES[1]) == {
            **before, "rate": 5, "quota": 0.5, "battery": 0.25, "pin": NAMES[1],
        }  # fmt: skip
        assert client.set(quota=None, battery=None, pin=None, rate=0) == before


def test_an_idle_pool_frees_what_ran_before(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *RELAXED, "--keep-s", "0.1") as server, server.client() as client:
        client.set(pin=NAMES[1])
        client.infer_with(1, picture(SIDES[1]))
        for _ in range(100):
            if client.status()["loaded"] == [NAMES[0], NAMES[1]]:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the member that ran before is still materialised")


def test_the_option_of_another_ncnn_is_named(command: tuple[str, ...], pool: TinyPool) -> None:
    rewritten(pool.folder, lambda index: replace(index, options=(("use_no_such_thing", True),)))
    done = subprocess.run([*command, str(pool.folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "knows no option use_no_such_thing" in done.stderr


def rewritten(folder: Path, change: object) -> Path:
    path = folder / "pool.txt"
    path.write_text(change(Index.parse(path.read_bytes())).text())  # type: ignore[operator]
    return folder


def with_latencies(folder: Path, factor: float) -> Path:
    """The pool, whose table says that each member takes ``factor`` times as many seconds as it had milliseconds."""

    def change(index: Index) -> Index:
        slower = (replace(m, split_ms=tuple(factor * 1e3 * each for each in m.split_ms)) for m in index.members)
        return replace(index, members=tuple(slower))

    return rewritten(folder, change)


def with_peaks(folder: Path, peaks: tuple[int, ...]) -> Path:
    def change(index: Index) -> Index:
        heavy = (replace(m, peak_bytes=peak) for m, peak in zip(index.members, peaks, strict=True))
        return replace(index, members=tuple(heavy))

    return rewritten(folder, change)


def test_status_and_metrics_have_the_names_that_clients_read(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder) as server, server.client() as client:
        status, text = client.status(), client.ask(METRICS).decode()
    assert " ".join(status) == (
        "model device members active target loaded broken seconds cores settings load machine monitor_cpu_seconds "
        "wants_search counters"
    )
    assert " ".join(status["settings"]) == "deadline_ms quantile rate battery quota pin"
    assert " ".join(status["load"]) == (
        "slowdown_compute slowdown_memory slowdown_fixed slowdown waiting forecast quantile"
    )
    assert " ".join(status["counters"]) == (
        "inferences by_member missed switches errors nothing_fits preparations mean_preparation_ms mean_accuracy "
        "mean_wall_ms mean_cpu_ms events"
    )
    assert (status["model"], status["device"]) == ("tiny", "host")
    assert status["members"][2] == {"name": NAMES[2], "accuracy": 92.0, "latency_ms": pytest.approx(0.065)}
    names = {line.split()[2].removeprefix("autotailor_") for line in text.splitlines() if line.startswith("# TYPE")}
    totals = ("inferences", "missed", "switches", "errors", "nothing_fits", "preparations", "accuracy_percent")
    gauges = ("active", "deadline_ms", "monitor_cpu_seconds", "members_loaded", "wants_search", "machine_run_s")
    assert names >= {
        *(f"{name}_total" for name in (*totals, "wall_seconds", "cpu_seconds", "preparation_seconds")),
        *(f"load_{name}" for name in status["load"]),
        *gauges,
        "latency_over_deadline",
    }
