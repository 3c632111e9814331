"""``pool.txt``: which members a pool has, what they cost, and the hashes of all files.

Example, with one member (lines are broken here, and hashes cut)::

    autotailor-pool 1
    model resnet_digits
    device host
    runtime 1 use_fp16_packed=0 use_fp16_storage=0
    cores 0
    weights fp32 114688 3f0c...
    norms 8192 91aa...
    member member_00 accuracy 96.4 latency_ms 0.1 compute_ms 0.06 memory_ms 0.03 fixed_ms 0.01 peak_bytes 524288
        energy_mj - input in0 3x32x32 output out0 10 param 77c1... slices 02be...
    end 8d3e...

The line ``cores`` is missing where the system chose the cores of the measurements. A line ``task NAME`` stands behind
it where the networks do not classify. Members with exits have further lines (``exits.py``). The hash behind ``end`` is
that of all bytes before its line.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from autotailor.serving.errors import PoolError
from autotailor.serving.files import words
from autotailor.serving.files.exits import Confidence, Exit, Thresholds, lines_of, parse_exits

CLASSES = ("compute", "memory", "fixed")
"""The classes of operators that load slows down differently (``Member.split_ms``, in this order).

``compute`` is bound by arithmetic, ``memory`` by bandwidth and caches, and ``fixed`` is the cost of starting operators.
"""
FORMAT = "autotailor-pool 1"
INDEX, WEIGHTS, NORMS, MEMBERS = "pool.txt", "weights.bin", "norms.bin", "members"
PRECISIONS = {"fp32": "<f4", "fp16": "<f2"}
"""Names of the precisions of ``weights.bin``, and NumPy's names of their types."""
REMEDY = "copy the folder of the pool again, or make it anew with the rule pool"


@dataclass(frozen=True)
class File:
    """Size and SHA-256 of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Member:
    """One SubNet of a pool.

    Attributes:
        name: of its files in the folder ``members``.
        accuracy: percent.
        split_ms: milliseconds without load, for each of ``CLASSES``.
        peak_bytes: peak memory of an inference, weights included.
        energy_mj: energy of one inference above idle, in millijoules; NaN where unknown.
        input, shape: blob of the image, and its shape ``(channels, height, width)``.
        output, classes: blob of the logits, and their number.
        param, slices: SHA-256 of the member's two files.
        exits: where it can answer before its end, in the order of the network.
        thresholds: of its exits, by name.
    """

    name: str
    accuracy: float
    split_ms: tuple[float, float, float]
    peak_bytes: int
    energy_mj: float
    input: str
    shape: tuple[int, int, int]
    output: str
    classes: int
    param: str
    slices: str
    exits: tuple[Exit, ...] = ()
    thresholds: tuple[Thresholds, ...] = ()

    @property
    def latency_ms(self) -> float:
        """Milliseconds without load."""
        return sum(self.split_ms)


@dataclass(frozen=True)
class Index:
    """The content of ``pool.txt``.

    Attributes:
        model, device: names in the configuration.
        threads: of the measurements.
        options: ncnn's options of the measurements.
        precision: of ``weights.bin``, one of ``PRECISIONS``.
        weights, norms: the two files that members share.
        members: by rising latency.
        cores: on which the pool was measured; empty where the system chose.
        confidence: of answers, where members have exits.
        task: of the networks (``data.task``); empty where they classify.
    """

    model: str
    device: str
    threads: int
    options: tuple[tuple[str, bool], ...]
    precision: str
    weights: File
    norms: File
    members: tuple[Member, ...]
    cores: tuple[int, ...] = ()
    confidence: Confidence | None = None
    task: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files below the folder of the pool that a device reads, ``pool.txt`` first."""
        own = (f"{MEMBERS}/{member.name}.{kind}" for member in self.members for kind in ("param", "slices"))
        return (INDEX, WEIGHTS, NORMS, *own)

    @property
    def largest_input(self) -> tuple[int, int, int]:
        """Shape of the largest input that a member has."""
        return max((member.shape for member in self.members), key=math.prod)

    def text(self) -> str:
        """The file."""
        options = "".join(f" {name}={int(value)}" for name, value in self.options)
        lines = [
            FORMAT,
            f"model {self.model}",
            f"device {self.device}",
            f"runtime {self.threads}{options}",
            *([f"cores {' '.join(map(str, self.cores))}"] if self.cores else []),
            *([f"task {self.task}"] if self.task else []),
            f"weights {self.precision} {self.weights.bytes} {self.weights.sha256}",
            f"norms {self.norms.bytes} {self.norms.sha256}",
            *([self.confidence.line()] if self.confidence else []),
            *chain.from_iterable(
                (_member_line(member), *lines_of(member.exits, member.thresholds)) for member in self.members
            ),
        ]
        body = "".join(f"{line}\n" for line in lines)
        return f"{body}end {hashlib.sha256(body.encode()).hexdigest()}\n"

    @classmethod
    def parse(cls, content: bytes, path: str = INDEX) -> Index:
        """Reads the file.

        Args:
            content: of the file.
            path: for messages.

        Raises:
            PoolError: the file is damaged, or of another version.
        """
        body = _body(content, path)
        lines: Iterator[str] = iter(body)
        try:
            next(lines)
            (model,), (device,) = _words(lines, "model", 1), _words(lines, "device", 1)
            threads, *options = _words(lines, "runtime")
            cores, lines = _optional(lines, "cores")
            task, lines = _optional(lines, "task")
            precision, *weights = _words(lines, "weights", 3)
            norms = _words(lines, "norms", 2)
            confidence, lines = _optional(lines, "confidence")
            index = cls(
                *(words.name(model), words.name(device), words.count(threads), tuple(map(_option, options))),
                *(precision, _file(weights), _file(norms), _members(lines)),
                tuple(words.count(word, least=0) for word in cores),
                Confidence(*confidence) if confidence else None,
                words.name(" ".join(task)) if task else "",
            )
            index._check()
        except (ValueError, StopIteration) as error:
            raise PoolError(f"{path}: {error or 'lines are missing'} ({len(body)} lines); {REMEDY}") from error
        return index

    def _check(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision {self.precision}, expected one of {', '.join(PRECISIONS)}")
        if not self.members:
            raise ValueError("there is no member")
        if len({member.name for member in self.members}) < len(self.members):
            raise ValueError("two members have the same name")
        if len({member.classes for member in self.members}) > 1:
            raise ValueError("members have different numbers of classes")
        if (self.confidence is None) == any(member.exits for member in self.members):
            raise ValueError("members have exits without a line confidence, or there is such a line without exits")


def check_successor(before: Index, after: Index) -> None:
    """Refuses a pool that cannot take another one's place while clients are connected.

    Clients know the model's classes, and send pictures at the size of any member's input.

    Raises:
        PoolError: the pool is another model's or device's, has other classes, or lacks an input of the pool before.
    """
    for what, old, new in (
        ("model", before.model, after.model),
        ("device", before.device, after.device),
        ("number of classes", before.members[0].classes, after.members[0].classes),
    ):
        if old != new:
            raise PoolError(
                f"the new pool's {what} is {new}, and clients expect {old}; start another server for it, with another "
                "address"
            )
    if lacking := {member.shape for member in before.members} - {member.shape for member in after.members}:
        sizes = ", ".join("x".join(map(str, shape)) for shape in sorted(lacking))
        raise PoolError(
            f"no member of the new pool takes pictures of {sizes}, which clients may send; start another server for it"
        )


def _member_line(member: Member) -> str:
    split = " ".join(f"{name}_ms {value!r}" for name, value in zip(CLASSES, member.split_ms, strict=True))
    energy = "-" if math.isnan(member.energy_mj) else repr(member.energy_mj)
    return (
        f"member {member.name} accuracy {member.accuracy!r} latency_ms {member.latency_ms!r} {split} "
        f"peak_bytes {member.peak_bytes} energy_mj {energy} input {member.input} {'x'.join(map(str, member.shape))} "
        f"output {member.output} {member.classes} param {member.param} slices {member.slices}"
    )


_MEMBER = re.compile(
    r"member (?P<name>\S+) accuracy (?P<accuracy>\S+) latency_ms (?P<latency>\S+) compute_ms (?P<compute>\S+) "
    r"memory_ms (?P<memory>\S+) fixed_ms (?P<fixed>\S+) peak_bytes (?P<peak>\S+) energy_mj (?P<energy>\S+) "
    r"input (?P<input>\S+) (?P<shape>\d+x\d+x\d+) output (?P<output>\S+) (?P<classes>\S+) "
    r"param (?P<param>\S+) slices (?P<slices>\S+)"
)


def _member(line: str) -> Member:
    match = _MEMBER.fullmatch(line)
    if match is None:
        raise ValueError(f"{line[:80]!r} is no line of a member")
    split = tuple(words.number(match[name]) for name in CLASSES)
    latency, (c, h, w) = words.number(match["latency"]), (words.count(size) for size in match["shape"].split("x"))
    if min(split) < 0 or latency <= 0 or not math.isclose(sum(split), latency, rel_tol=1e-6):
        raise ValueError(f"member {match['name']}: its latency {latency} ms is not the sum of {split}")
    return Member(
        name=words.name(match["name"]),
        accuracy=words.number(match["accuracy"]),
        split_ms=(split[0], split[1], split[2]),
        peak_bytes=words.count(match["peak"]),
        energy_mj=math.nan if match["energy"] == "-" else words.number(match["energy"]),
        input=match["input"],
        shape=(c, h, w),
        output=match["output"],
        classes=words.count(match["classes"]),
        param=words.digest(match["param"]),
        slices=words.digest(match["slices"]),
    )


def _members(lines: Iterable[str]) -> tuple[Member, ...]:
    """The members, each with the lines of exits behind its own one."""
    groups: list[list[str]] = []
    for line in lines:
        if line.startswith("member ") or not groups:
            groups.append([])
        groups[-1].append(line)
    members = ((_member(line), further) for line, *further in groups)
    return tuple(_with_exits(member, further) for member, further in members)


def _with_exits(member: Member, lines: Sequence[str]) -> Member:
    exits, thresholds = parse_exits(lines, member.output, member.latency_ms)
    return replace(member, exits=exits, thresholds=thresholds)


def _body(content: bytes, path: str) -> list[str]:
    """The lines before the last one; checks version and hash."""
    if not content.startswith(f"{FORMAT}\n".encode()):
        first, (name, _, _) = content[:40].split(b"\n")[0], FORMAT.partition(" ")
        why = "another version wrote it" if first.startswith(f"{name} ".encode()) else "it is cut, or no pool's"
        raise PoolError(f"{path}: begins with {first!r}, expected {FORMAT!r}: {why}; {REMEDY}")
    begin = content.rfind(b"\n", 0, -1) + 1
    body, last = content[:begin], content[begin:]
    if last != f"end {hashlib.sha256(body).hexdigest()}\n".encode():
        raise PoolError(f"{path}: is cut or changed, because its last line does not fit the lines before; {REMEDY}")
    return body.decode("utf-8", errors="replace").splitlines()


def _words(lines: Iterator[str], key: str, count: int | None = None) -> list[str]:
    line = next(lines)
    first, *words = line.split(" ")
    if first != key or not words or (count is not None and len(words) != count):
        raise ValueError(f"{line[:80]!r} is no line {key!r}")
    return words


def _optional(lines: Iterator[str], key: str) -> tuple[list[str], Iterator[str]]:
    """The words of a line that may be missing, and the lines behind it."""
    line = next(lines, "")
    if line.startswith(f"{key} "):
        return line.split(" ")[1:], lines
    return [], chain([line] if line else [], lines)


def _option(word: str) -> tuple[str, bool]:
    name, _, value = word.partition("=")
    if value not in ("0", "1"):
        raise ValueError(f"{word!r} is no option NAME=0 or NAME=1")
    return words.name(name), value == "1"


def _file(line_words: list[str]) -> File:
    return File(words.count(line_words[0], least=0), words.digest(line_words[1]))
