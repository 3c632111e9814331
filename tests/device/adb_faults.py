"""Ways in which a device misbehaves."""

import threading
from dataclasses import dataclass


@dataclass
class Fault:
    """Something that goes wrong for some times, after having gone right for some times.

    Attributes:
        after: occasions that are left alone.
        times: occasions that go wrong after them.
        seconds: how long it lasts, where that has a meaning.
    """

    after: int = 0
    times: int = 1
    seconds: float = 0.5


KINDS = {
    "refuse": "connections are closed at once",
    "drop": "the connection breaks after a message of data",
    "stall": "nothing is answered for some seconds",
    "corrupt": "a byte of a message's data is wrong",
    "damage": "a byte of a file is wrong though all checksums hold",
    "cut": "half of a command's output, properly closed",
    "full": "no space for a file",
}


class Faults:
    """What a daemon is told to do wrong, by kind (`KINDS`); thread safe. ``AdbDaemon.reboot`` restarts a device."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._lock = threading.Lock()
        self.happened: dict[str, int] = {}

    def plan(self, kind: str, after: int = 0, times: int = 1, seconds: float = 0.5) -> None:
        """Tells the daemon to do something wrong; raises ValueError for what it cannot do."""
        if kind not in KINDS:
            raise ValueError(f"unknown fault {kind!r}, expected one of {', '.join(KINDS)}")
        with self._lock:
            self._faults[kind] = Fault(after, times, seconds)

    def strikes(self, kind: str) -> Fault | None:
        """Whether this occasion goes wrong."""
        with self._lock:
            fault = self._faults.get(kind)
            if fault is None or fault.times == 0:
                return None
            if fault.after > 0:
                fault.after -= 1
                return None
            fault.times -= 1
            self.happened[kind] = self.happened.get(kind, 0) + 1
            return fault
