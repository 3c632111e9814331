"""Devices: configuration, the fingerprint that identifies measurements, and opening a runtime or transport by name."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self, TypeVar

from autotailor.ir.feature import Engine, freeze_attributes
from autotailor.profiling.errors import DeviceError
from autotailor.sections import Section
from autotailor.values import Bound, Natural, OneOf, Positive, Told, UnfitError

PRECISIONS = ("fp32", "fp16")
PROTOCOL = 6
"""Number of the measuring procedure.

A change of the procedure that changes the latency of an operator raises this number. The number is part of the
fingerprint, so that the LUT store measures operators anew.
"""
DRIFT = "a positive share of the anchor's latency, for instance 0.2"
UNSTABLE_FACTS = frozenset({"memory_gb", "hostname"})


class DeviceConfig(Section, of="device", error=DeviceError):
    """One device, as ``conf/device/NAME.yaml`` describes it.

    Attributes:
        name: name of the device in results and messages.
        transport: how commands and files reach the device, ``local`` (this computer), ``adb`` or ``ssh``.
        runtime: what executes networks there, ``ncnn``, ``onnxruntime`` or ``torch``.
        threads: threads of the runtime; at most the number of ``cores`` where these are named.
        cores: numbers of the cores that measuring is pinned to. Empty leaves the choice to the system.
        precision: of the runtime's storage and arithmetic.
        address: host name or address with an optional port, for ``ssh`` (also ``user@host``, or a name of
            ``~/.ssh/config``) and for ``adb`` over the network.
        serial: serial number of a device on USB, as ``adb devices`` prints it; needed where several are plugged in.
        key: file of this user's private key. Null takes the one that ``adb`` or ``ssh`` uses.
        folder: folder on a remote device for a run's files. Null is ``/data/local/tmp/autotailor`` with ``adb``,
            ``.cache/autotailor`` in the user's home with ``ssh``.
        warmup: untimed runs of each network before it is timed.
        precision_target: relative standard error at which an operator's latency is known well enough.
        drift: share by which the anchor's latency may be off in a batch. Operators and networks that were measured only
            in batches that are further off are measured again; with ``.inf`` none are.
        min_minutes: new operators are visited for at least so many minutes, because a single visit can be off as a
            whole.
        max_minutes: time budget of the rule ``profile``, in minutes; ``profile.max_minutes`` takes it over. ``.inf``
            sets none.
        hang_minutes: a batch of networks that takes longer than this, and longer than ten times what was planned for
            it, is ended as hung.
        evict_mb: MiB of memory that are read before each timed run of replicas; about twice a core's own cache.
        energy_seconds: seconds that each kind of operator runs to learn its power, where the device has a sensor. 0
            leaves energy out.
        fusion: corrections of the runtime's fusion rules: ``{add: [[Conv, HardSwish]], remove: [[Conv, Relu]]}``, each
            a producer and its follower.
        options: switches of the runtime by its own names. ncnn: members of ``ncnn.Option`` that begin with ``use_``;
            onnxruntime: ``graph_optimization_level`` and session entries (``session.*``); torch: ``device`` (``cpu``,
            ``cuda``, ``cuda:1``), ``channels_last`` and, on a board, ``python`` (the interpreter that has PyTorch).
    """

    name: str
    transport: str = "local"
    runtime: str = "ncnn"
    threads: Positive = 1
    cores: Annotated[tuple[Natural, ...], Told("a list of core numbers, for instance [0] (empty: any core)")] = ()
    precision: Annotated[str, OneOf(*PRECISIONS)] = "fp32"
    address: str | None = None
    serial: str | None = None
    key: str | None = None
    folder: str | None = None
    warmup: Natural = 3
    precision_target: Annotated[float, Bound(gt=0, lt=1, expected="a relative standard error between 0 and 1")] = 0.03
    drift: Annotated[float, Bound(gt=0, limitless=True, expected=DRIFT)] = 0.2
    min_minutes: Annotated[float, Bound(ge=0, le=60, expected="a number of minutes between 0 and 60")] = 0.75
    max_minutes: Annotated[float, Bound(gt=0, limitless=True, expected="a positive number of minutes")] = 3.0
    hang_minutes: Annotated[float, Bound(gt=0, le=24 * 60, expected="a positive number of minutes, a day at most")] = (
        10.0
    )
    evict_mb: Annotated[float, Bound(ge=0, le=1024, expected="a number of MiB between 0 and 1024")] = 2.0
    energy_seconds: Annotated[float, Bound(ge=0, le=600, expected="a number of seconds between 0 and 600")] = 8.0
    fusion: Annotated[
        Mapping[Literal["add", "remove"], tuple[tuple[str, str], ...]],
        Told("a mapping with the keys add and remove, lists of [producer, follower]"),
    ] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def engine(self) -> Engine:
        """What runs every operator whose feature has no setting."""
        return Engine(self.runtime, self.precision, freeze_attributes(self.options))

    @property
    def number_bytes(self) -> int:
        """Bytes of a number of an activation."""
        return 2 if self.precision == "fp16" else 4

    def __post_init__(self) -> None:
        if len(set(self.cores)) != len(self.cores):
            raise UnfitError("cores", f"expected distinct core numbers, not {list(self.cores)}")
        if self.cores and len(self.cores) < self.threads:
            raise UnfitError("threads", f"expected at most the number of cores {list(self.cores)}, not {self.threads}")

    @classmethod
    def from_section(cls, section: Mapping[str, Any], *, where: str | None = None) -> Self:
        """Reads the section ``device``, in which null stands for the default.

        Raises:
            DeviceError: an unknown or missing key, or a value that makes no sense.
        """
        name = section.get("name", "?")
        if "cost" in section:
            raise DeviceError(
                f"device {name}: it counts {section['cost']} and stands for no device; name another file of conf/device"
            )
        if not section.get("name"):
            raise DeviceError("a device needs a name: set device.name")
        given = {key: value for key, value in section.items() if value is not None}
        return super().from_section(given, where=where or f"device {name}: device")


@dataclass(frozen=True)
class Fingerprint:
    """What a measurement depends on besides the operator. The fingerprint is part of the LUT's key.

    Attributes:
        facts: hardware, runtime and version, options, precision, threads, cores; JSON values only.
    """

    facts: Mapping[str, Any]

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(self.facts, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Fingerprint:
        """Reads ``to_json``.

        Raises:
            ValueError: the text is no JSON, or describes no device.
        """
        try:
            facts = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError as error:
            raise ValueError("nested too deep") from error
        if not isinstance(facts, dict):
            raise ValueError("it is no mapping of names to values")
        for name in ("hardware", "runtime"):
            if not isinstance(facts.get(name, {}), dict):
                raise ValueError(f"{name} is {str(facts[name])[:100]!r}, expected names and values")
        if not isinstance(facts.get("anchor", ""), str):
            raise ValueError("anchor is no operator's id")
        return cls(facts)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    @property
    def anchor(self) -> str:
        """Id of the anchor operator; empty where the facts name none."""
        return str(self.facts.get("anchor", ""))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def fingerprint(
    device: DeviceConfig, hardware: Mapping[str, Any], runtime: Mapping[str, Any], anchor: str = ""
) -> Fingerprint:
    """Fingerprint of a device, from the facts of its transport and runtime.

    Args:
        device: the device's configuration.
        hardware: facts of ``Transport.probe``; facts that may change without changing a latency are left out.
        runtime: name, version and options of the runtime.
        anchor: id of the operator that measurements are corrected for drift by.
    """
    return Fingerprint(
        {
            "hardware": {k: v for k, v in sorted(hardware.items()) if k not in UNSTABLE_FACTS},
            "runtime": dict(runtime),
            "precision": device.precision,
            "threads": device.threads,
            "cores": list(device.cores),
            "evict_mb": float(device.evict_mb),
            "anchor": anchor,
            "protocol": PROTOCOL,
        }
    )


Part = TypeVar("Part")
Registry = dict[str, Callable[[DeviceConfig], Part]]


def open_part(kind: str, name: str, registry: Registry[Part], device: DeviceConfig, base: type[object]) -> Part:
    """Makes a device's runtime or transport by name.

    Args:
        kind: ``runtime`` or ``transport``, which is the key in the configuration's section ``device``.
        name: the runtime's or transport's name.
        registry: all known runtimes or transports.
        device: the device's configuration, for the runtime or transport.
        base: the class that every runtime or transport extends.

    Raises:
        DeviceError: the registry does not hold the name, or what it holds makes no runtime or transport.
    """
    if name not in registry:
        raise DeviceError(
            f"device {device.name}: device.{kind}: unknown {kind} {name!r}; known are {', '.join(registry)}"
        )
    make, where = registry[name], f"device {device.name}: device.{kind}: {kind} {name!r}"
    if inspect.isabstract(make):
        missing = ", ".join(sorted(getattr(make, "__abstractmethods__", ())))
        raise DeviceError(f"{where}: {make.__name__} lacks {missing}; define all that {base.__name__} leaves abstract")
    part = make(device)
    if not isinstance(part, base):
        raise DeviceError(
            f"{where}: what is registered made {type(part).__name__}, expected a {base.__name__}; register a class "
            f"that extends {base.__name__}, or a function that returns one of its objects"
        )
    return part
