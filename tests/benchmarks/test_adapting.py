"""The replay of ``runtime.py``: what controllers get, and how they are judged."""

from dataclasses import replace

import numpy as np
import pytest
from adapting.loads import LOADS, PERIOD_US, Step, quota_of
from adapting.recording import Recorded
from adapting.replay import best_fixed, clairvoyant, judge, one_late, play
from adapting.rivals import Fixed, LoadIndex, Ours, Ratio
from adapting.simulated import members, simulated

from autotailor.serving.files import Member
from served import serve_binary

LATENCIES = (1.0, 2.0, 4.0)
ACCURACY = np.array([70.0, 80.0, 90.0])
MEMBERS = [
    Member(f"m{i}", 70.0 + 10 * i, (ms, 0.0, 0.0), 1, float("nan"), "in0", (3, 8, 8), "out0", 4, "0" * 64, "0" * 64)
    for i, ms in enumerate(LATENCIES)
]
DEADLINE = 5.0


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    serve_binary()


def trace(slowdowns: tuple[float, ...] = (1.0, 2.0, 1.0), rounds: int = 200) -> Recorded:
    """Steps of the load, each of which slows all members down alike."""
    factors = np.repeat(slowdowns, rounds)
    wall = factors[:, None] * LATENCIES
    seconds = np.arange(len(factors)) * 0.02
    return Recorded(seconds, np.repeat(np.arange(len(slowdowns)), rounds), wall, wall, np.zeros(len(wall)), "cgroup")


def test_a_fixed_member_gets_its_own_latencies() -> None:
    judged = judge(trace(), play(trace(), Fixed(2), 2, [0.0] * 3), ACCURACY, DEADLINE)
    assert judged.missed == pytest.approx(1 / 3)
    assert judged.accuracy == 90.0
    assert judged.latency_ms == pytest.approx(16 / 3)
    assert judged.recovery == 100.0  # the step that it never recovers from, and the one that it need not


def test_the_clairvoyant_runs_the_best_member_of_each_step() -> None:
    played = clairvoyant(trace(), ACCURACY, DEADLINE, 0.95)
    assert [played.members[at] for at in (50, 250, 450)] == [2, 1, 2]
    assert judge(trace(), played, ACCURACY, DEADLINE).missed == 0.0


def test_the_best_fixed_member_is_the_best_of_those_that_miss_few() -> None:
    assert best_fixed(trace(), ACCURACY, DEADLINE, 0.1) == 1
    assert best_fixed(trace(), ACCURACY, DEADLINE, 0.5) == 2


def test_the_load_index_forecasts_what_others_use() -> None:
    """A core of which others use more and more; of what they use, the model of order 2 knows the next value."""
    index = LoadIndex(MEMBERS, DEADLINE)
    for use in np.linspace(0.1, 0.5, 30):
        index.learn(0, 1.0, 1.0, float(use))
    assert index.forecast() == pytest.approx(0.5 + 0.4 / 29)
    assert index.choose(0) == 1  # 4 ms take 8 of 5 ms, and 2 ms take 4


@pytest.mark.parametrize("name", ["ratio", "ours"])
def test_controllers_follow_a_load_that_slows_all_members_alike(name: str) -> None:
    made = Ratio(MEMBERS, DEADLINE) if name == "ratio" else Ours(MEMBERS, DEADLINE)
    judged = judge(trace(), play(trace(), made, 2, [0.02] * 3), ACCURACY, DEADLINE)
    assert judged.missed < 0.03
    assert judged.accuracy > 85.0


def test_a_member_runs_only_after_its_preparation() -> None:
    played = play(trace((1.0,), 100), Fixed(1), 2, [0.0, 0.5, 0.0])
    assert set(played.members[:25]) == {2}
    assert set(played.members[27:]) == {1}


@pytest.mark.parametrize("name", LOADS)
def test_a_load_begins_at_once_and_changes_in_order(name: str) -> None:
    steps = LOADS[name](10.0)
    times = [step.seconds for step in steps]
    assert times[0] == 0.0
    assert times == sorted(times)
    assert len(steps) > 2
    assert all(0 < step.quota <= 1 and step.corunners <= 3 for step in steps)


def test_who_is_one_inference_late_misses_what_follows_a_step_to_more_load() -> None:
    recorded = trace()
    late = one_late(recorded, clairvoyant(recorded, ACCURACY, DEADLINE, 0.95), 2)
    assert judge(recorded, late, ACCURACY, DEADLINE).missed == pytest.approx(1 / len(recorded.seconds))
    assert late.members[400] == 1


def quota_trace() -> Recorded:
    """Inferences of 10, 20 and 40 ms without a pause, while a quota falls and rises in steps of 20 rounds."""
    cpu, wall, used = np.tile([10.0, 20.0, 40.0], (80, 1)), np.empty((80, 3)), 0.0
    steps = np.repeat([0, 1, 2, 3], 20)
    for t, number in enumerate(steps):
        budget = SHARES[number] * PERIOD_MS
        for member in range(3):
            stops = np.floor((used + cpu[t, member]) / budget)
            used = used + cpu[t, member] - stops * budget
            wall[t, member] = cpu[t, member] + stops * (PERIOD_MS - budget)
    return Recorded(np.arange(80) * 0.3, steps, wall, cpu, np.zeros(80), "cgroup")


SHARES = (1.0, 0.8, 0.35, 0.6)
PERIOD_MS = PERIOD_US / 1000


def test_a_quota_that_is_read_is_followed_at_once_and_one_that_is_not_after_two_inferences() -> None:
    recorded = quota_trace()
    long = [replace(member, split_ms=(cpu, 0.0, 0.0)) for member, cpu in zip(MEMBERS, recorded.cpu[0], strict=True)]
    steps = [Step(0.0, quota=share) for share in SHARES]
    told = Ours(long, 90.0, 0.9, lambda second: quota_of(steps, int(recorded.step[round(second / 0.3)])))
    untold = Ours(long, 90.0, 0.9)
    read, found = (play(recorded, each, 2, [0.02] * 3).latency > 90.0 for each in (told, untold))
    assert (recorded.wall[40:60, 2] > 90.0).all()  # the largest is late under the tightest quota
    assert not read.any()
    assert np.flatnonzero(found).tolist() == [40, 41]


@pytest.mark.parametrize(
    ("step", "waiting"), [(Step(0.0, quota=0.4), 1.5), (Step(0.0, corunners=2), 2.0), (Step(0.0), 0.0)]
)
def test_simulated_inferences_wait_as_much_as_the_load_says(step: Step, waiting: float) -> None:
    recorded = simulated([step], 30.0, 40.0, 20.0, np.random.default_rng(0))
    assert recorded.wall.shape == recorded.cpu.shape == (len(recorded.seconds), len(members(40.0)))
    assert recorded.wall.sum() / recorded.cpu.sum() - 1 == pytest.approx(waiting, rel=0.05)
    assert recorded.seconds[-1] < 30 <= recorded.seconds[-1] + recorded.wall[-1].sum() / 1000
