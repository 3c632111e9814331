"""Profiling for real, killed with SIGKILL at random moments: nothing is lost, nothing is measured again."""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import autotailor
from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.profiling import DeviceConfig, Store, open_runtime, profile

DEVICE = DeviceConfig.from_section({"name": "test", "precision_target": 0.9, "drift": 10, "min_minutes": 0})
RUNTIME = open_runtime(DEVICE)
ANCHOR = RUNTIME.anchor().id
KILLS = 20


def conv(channels: int) -> OperatorFeature:
    shape = (1, channels, 8, 8)
    attributes = freeze_attributes({"pads": (1, 1, 1, 1), "strides": (1, 1), "group": 1})
    weights = ((channels, channels, 3, 3), (channels,))
    return OperatorFeature("Conv", (shape,), (shape,), weights, attributes, (Follower("Relu"),))


def visits(folder: Path) -> list[str]:
    """Operators in the order they were measured, the anchor left out."""
    store = Store(folder)
    records = [record for device in store.devices() for record in store.records(device.fingerprint.id)]
    return [record.key for record in records if record.key != ANCHOR]


def killed(work: Callable[[], object], seconds: float) -> bool:
    """Runs some work in a process of its own, which is killed with all its children; whether it was."""
    process = os.fork()
    if process == 0:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno()), os.dup2(null, sys.stderr.fileno())
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return False
        time.sleep(0.002)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


@pytest.mark.sweep
def test_each_operator_is_measured_once(tmp_path: Path) -> None:
    operators = [conv(8 * i) for i in range(1, 97)]
    rng, kills, before = random.Random(0), 0, list[str]()
    while kills < KILLS and killed(lambda: profile(operators, DEVICE, tmp_path), rng.uniform(0.3, 1.5)):
        kills += 1
        after = visits(tmp_path)
        assert after[: len(before)] == before
        before = after
    lut = profile(operators, DEVICE, tmp_path)
    assert kills > 1
    assert Counter(visits(tmp_path)) == Counter(feature.id for feature in operators)
    assert Counter(row.feature.id for row in lut if row.feature.id != ANCHOR) == Counter(f.id for f in operators)


@pytest.mark.sweep
def test_in_place_every_further_batch_holds_something_new(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    operators = resnet_net.operators(fusion=RUNTIME.fusion)
    rng, kills, before = random.Random(0), 0, list[str]()
    while kills < KILLS and killed(lambda: profile(operators, DEVICE, tmp_path, net=resnet_net), rng.uniform(0.3, 1.5)):
        kills += 1
        after = visits(tmp_path)
        assert after[: len(before)] == before
        assert len(after) == len(before) or set(after[len(before) :]) - set(before)
        before = after
    lut = profile(operators, DEVICE, tmp_path, net=resnet_net)
    rows = Counter(row.feature.id for row in lut if row.feature.id != ANCHOR)
    assert rows == Counter(feature.id for feature in operators)
