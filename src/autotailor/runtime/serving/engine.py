"""The engine: materialised are the active member, the next one, and the smallest. No other member takes memory.

A switch to a materialised member takes place at once, between two inferences. Any other member is prepared in a thread
first, which gathers its slices; until it is ready, the engine runs what its owner finds best among those that are
there. After a switch the member that was active before stays as the next one, because loads come and go; the thread
drops it when another member is to be prepared.

The thread's priority is that of the others: it holds Python's lock while ncnn packs a layer, so that with a lower
priority the inference would wait behind whatever else the machine runs. The thread and inferences take turns, see
``shift``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.runtime.errors import PoolError
from autotailor.runtime.files import Member, OpenPool, Piece, load_member
from autotailor.runtime.files.opened import bytes_of
from autotailor.runtime.serving import cores
from autotailor.runtime.serving.clock import Stopwatch
from autotailor.runtime.serving.resize import resized
from autotailor.runtime.serving.shift import Shift
from autotailor.runtime.wire.bodies import Picture
from autotailor.runtime.wire.turns import Turns

PART_BYTES = 1 << 18
"""Weights are handed to ncnn in parts of this size, between which an inference can run."""
TURN_S = 2e-4
"""How long a thread may keep Python's lock while a member is prepared."""
KEPT = 64
"""Preparations that are remembered."""


@dataclass(frozen=True, eq=False)
class Ran:
    """One inference: its outputs ``[N]``, and its times."""

    outputs: Picture
    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class Preparation:
    """How long a member's preparation took, from the wish to the member being there."""

    member: int
    seconds: float


@dataclass(frozen=True, eq=False)
class _Gentle(OpenPool):
    """A pool whose reader lets inferences run in between, and whose folder another pool may take.

    The shared files are mapped, so that they are there until the pool is closed. Networks and pieces are held.

    Attributes:
        texts: networks and pieces by member.
        shift: of the thread that reads.
    """

    texts: Mapping[str, tuple[str, tuple[Piece, ...]]]
    shift: Shift

    @classmethod
    def of(cls, pool: OpenPool, shift: Shift) -> _Gentle:
        """An opened pool; a member whose files are damaged is read again when it is wanted, which says so."""
        texts = {}
        for member in pool.index.members:
            with suppress(PoolError):
                texts[member.name] = (pool.param(member), pool.pieces(member))
        return cls(pool.folder, pool.index, pool.weights, pool.norms, texts, shift)

    def param(self, member: Member) -> str:
        held = self.texts.get(member.name)
        return super().param(member) if held is None else held[0]

    def pieces(self, member: Member) -> tuple[Piece, ...]:
        held = self.texts.get(member.name)
        return super().pieces(member) if held is None else held[1]

    def parts(self, piece: Piece) -> Iterator[npt.NDArray[np.float32 | np.uint32]]:
        self.shift.step(bytes_of(piece))
        values = self.read(piece)
        for begin in range(0, len(values), PART_BYTES // values.itemsize):
            part = values[begin : begin + PART_BYTES // values.itemsize]
            self.shift.step(part.nbytes)
            yield part
        # Behind the last piece of a layer, ncnn packs the layer; the weight is the last piece or the one before a bias.
        self.shift.step(values.nbytes)


def run_member(
    net: Any,
    member: Member,
    picture: Picture,
    watch: Stopwatch,
    turns: AbstractContextManager[object] | None = None,
) -> Ran:
    """Runs a loaded member on a picture ``[C, H, W]``, which is resized to the member's input.

    Args:
        net: the member's network.
        member: the member.
        picture: ``[C, H, W]``, converted to float32.
        watch: measures the inference, with the waiting for its turn.
        turns: shared with a thread that prepares members.

    Raises:
        PoolError: the picture has other channels or holds NaN or infinity, or ncnn fails.
    """
    import ncnn

    channels, height, width = member.shape
    if picture.ndim != 3:
        raise PoolError(f"infer: the picture has the shape {list(picture.shape)}, expected [{channels}, height, width]")
    if picture.shape[0] != channels:
        raise PoolError(f"infer: the picture has {picture.shape[0]} channels, expected {channels}")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        plain = np.ascontiguousarray(picture, dtype=np.float32)  # ncnn reads the memory as it lies, whatever its type
    if not (finite := np.isfinite(plain)).all():
        raise PoolError(
            f"infer: {finite.size - int(finite.sum())} of the picture's {finite.size} numbers are NaN or infinite "
            "in float32; prepare it as pool.json says"
        )
    with watch, turns or nullcontext():
        image = resized(plain, height, width)  # a name, because ncnn.Mat refers to the array and does not hold it
        extractor = net.create_extractor()
        extractor.input(member.input, ncnn.Mat(image).clone())
        code, output = extractor.extract(member.output)
        outputs = np.array(output).reshape(-1) if code == 0 else np.empty(0, np.float32)
    if code != 0 or outputs.size != member.classes:
        raise PoolError(f"ncnn ended the inference of {member.name} with code {code}; is there enough memory?")
    return Ran(outputs, watch.wall_ms, watch.cpu_ms)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Lets threads that wait for Python's lock have it sooner: the usual 5 ms are many inferences of a small one."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(TURN_S, before))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Engine:
    """Runs one member at a time, and prepares another one meanwhile; a context manager that ends its thread.

    Members are numbered in the order of the pool, from the one with the least latency. ``aim``, ``take`` and ``run``
    are called by one thread at a time.

    Attributes:
        active: the member that ``run`` runs.
        target: the member that is to become active.
        broken: members that could not be loaded, with the reason.
        preparations: the last ones.
    """

    def __init__(
        self,
        pool: OpenPool,
        first: int = 0,
        load: Callable[[OpenPool, Member], Any] = load_member,
        preparing: Collection[int] = (),
    ) -> None:
        """Loads the smallest member and the first one.

        Args:
            pool: an opened pool.
            first: the member that runs first.
            load: makes a network of a member.
            preparing: cores of the thread that prepares members; empty for those of the calling thread.

        Raises:
            PoolError: one of both cannot be loaded.
        """
        self._turns = Turns()
        self._shift = Shift(self._turns)
        self._pool = _Gentle.of(pool, self._shift)
        self._members = pool.index.members
        self._load, self._preparing = load, preparing
        self.active = self.target = first
        self._recent = first  # the member that was active last, beside the smallest
        self.broken: dict[int, str] = {}
        self.preparations: deque[Preparation] = deque(maxlen=KEPT)
        self._changed = threading.Condition()
        self._nets: dict[int, Any] = {number: load(pool, self._members[number]) for number in {0, first}}
        self._dropped: list[Any] = []
        self._is_open = True
        self._thread = threading.Thread(target=self._prepare, name="pool preparation", daemon=True)
        self._thread.start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the preparing thread, after the member that it is at."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        self._thread.join()

    @property
    def loaded(self) -> tuple[int, ...]:
        """The materialised members."""
        with self._changed:
            return tuple(sorted(self._nets))

    def aim(self, target: int, best_of: Callable[[Iterable[int]], int]) -> None:
        """Wants another member to run.

        Args:
            target: the member.
            best_of: chooses among materialised members the one that runs until the target is there.
        """
        with self._changed:
            self.target = target
            self._activate(target if target in self._nets else best_of(self._nets))
            self._changed.notify_all()

    def take(self) -> bool:
        """Switches to the target if it has become ready; to be called between two inferences.

        Returns:
            whether it switched.
        """
        with self._changed:
            if self.active == self.target or self.target not in self._nets:
                return False
            self._activate(self.target)
            return True

    def wait(self, timeout_s: float) -> bool:
        """Waits until the target is ready or broken; returns whether it is ready."""
        with self._changed:
            self._changed.wait_for(lambda: self.target in self._nets or self.target in self.broken, timeout_s)
            return self.target in self._nets

    def run(self, picture: Picture) -> Ran:
        """Runs the active member on a picture ``[C, H, W]``, which is resized to the member's input.

        Raises:
            PoolError: the picture has other channels, or ncnn fails.
        """
        with self._changed:
            member, net = self._members[self.active], self._nets[self.active]
        return run_member(net, member, picture, Stopwatch(self._pool.index.threads, self._thread), self._turns)

    def _activate(self, number: int) -> None:
        self.active = number
        self._recent = number or self._recent

    def _wanted(self) -> int | None:
        """The member that is to be prepared; None while there is none."""
        is_there = self.target in self._nets or self.target in self.broken
        return None if is_there else self.target

    def _prepare(self) -> None:
        """The thread: loads what is wanted, and frees what is not."""
        cores.use(self._preparing)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_open or self._wanted() is not None)
                if not self._is_open:
                    return
                wanted = self._wanted()
                assert wanted is not None  # as waited for
                self._drop_but({0, self._recent})
            while self._dropped:  # outside of the condition, because freeing takes time
                self._shift.step(0)
                self._dropped.pop()
                self._shift.end()
            begun = time.perf_counter()
            try:
                with _short_turns():
                    net = self._load(self._pool, self._members[wanted])
            except Exception as error:  # the thread must live on, and the owner hears why the member is not there
                with self._changed:
                    self.broken[wanted] = str(error) or type(error).__name__
                    self._changed.notify_all()
                continue
            finally:
                self._shift.end()
            with self._changed:
                self._nets[wanted] = net
                self.preparations.append(Preparation(wanted, time.perf_counter() - begun))
                self._changed.notify_all()
            del net

    def _drop_but(self, kept: set[int]) -> None:
        for number in [number for number in self._nets if number not in kept]:
            self._dropped.append(self._nets.pop(number))
