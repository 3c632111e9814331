"""Members for replays, which have no networks, and inferences that a replay hears of."""

import math

from autotailor.serving.files import Member
from autotailor.serving.replay import Replay
from served import serve_binary


def member_of(accuracy: float, split_ms: tuple[float, ...], energy_mj: float = math.nan) -> Member:
    """A member with a latency in operators of each class, without files; the library is built for the replay."""
    serve_binary()
    compute, memory, fixed = split_ms
    hashes = "0" * 64, "0" * 64
    return Member("m", accuracy, (compute, memory, fixed), 1, energy_mj, "in0", (3, 8, 8), "out0", 4, *hashes)


def ran_often(
    replay: Replay, member: Member, number: int, count: int, slowdown: float = 1.0, waited_ms: float = 0.0
) -> None:
    """Inferences of a member that are slowed down, and wait."""
    for _ in range(count):
        cpu = member.latency_ms * slowdown
        replay.ran(number, cpu + waited_ms, cpu)
