from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from autotailor.profiling import (
    TRANSPORTS,
    DeviceConfig,
    DeviceError,
    check,
    check_configuration,
    exporting_runtime,
    fusion_rules,
    open_runtime,
)
from autotailor.profiling.device import fingerprint
from autotailor.profiling.endpoint import check_cores
from autotailor.profiling.runtimes import RUNTIMES, NcnnRuntime
from autotailor.profiling.runtimes.base import Runtime
from autotailor.profiling.transports import LocalTransport, open_transport
from autotailor.profiling.transports.base import Transport

CONF = Path(__file__).parents[3] / "conf" / "device"

DEVICE = DeviceConfig("board")
PARTS = [("runtime", RUNTIMES, open_runtime, Runtime), ("transport", TRANSPORTS, open_transport, Transport)]
parts = pytest.mark.parametrize(("kind", "registry", "opened", "base"), PARTS, ids=["runtime", "transport"])


def device(**values: object) -> DeviceConfig:
    return DeviceConfig.from_section({"name": "test", **values})


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_configured_device_is_read(path: Path) -> None:
    section = yaml.safe_load(path.read_text())
    if "cost" in section:  # budgets limit what the graph says, and there is no device
        with pytest.raises(DeviceError, match=f"device {path.stem}: it counts .* and stands for no device"):
            DeviceConfig.from_section(section)
    else:
        assert DeviceConfig.from_section(section).name == path.stem


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"threads": 0}, "threads: expected an integer >= 1, not 0"),
        ({"threads": True}, "threads: expected an integer >= 1, not True"),
        ({"threads": 2, "cores": [0]}, "at most the number of cores"),
        ({"cores": "0"}, "list of core numbers"),
        ({"cores": [0, 0]}, "distinct"),
        ({"precision": "int3"}, "fp32, fp16"),
        ({"precision_target": 3}, "between 0 and 1"),
        ({"drift": 0}, "a positive share"),
        ({"max_minutes": 0}, "positive"),
        ({"min_minutes": -1}, "between 0 and 60"),
        ({"min_minutes": float("nan")}, "between 0 and 60"),
        ({"evict_mb": -1}, "MiB"),
        ({"fusion": {"addd": []}}, "add and remove"),
        ({"fusion": {"add": None}}, "add and remove"),
        ({"fusion": {"add": ["Conv", "Elu"]}}, r"device\.fusion: expected .* lists of \[producer, follower\], not"),
        ({"fusion": {"add": [["Conv"]]}}, r"lists of \[producer, follower\]"),
        ({"fusion": {"add": ["Ab"]}}, r"lists of \[producer, follower\]"),
        ({"thread": 1}, r"device test: device: unknown keys \['thread'\]; known are \['address'"),
        (
            {"max_minutes": "long"},
            r"test: device\.max_minutes: expected a positive number of minutes, not 'long'",
        ),
    ],
)
def test_senseless_values_are_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        device(**values)


def test_a_device_needs_a_name() -> None:
    with pytest.raises(DeviceError, match=r"device\.name"):
        DeviceConfig.from_section({"threads": 1})


@pytest.mark.parametrize("name", [name for name in TRANSPORTS if name != "local"])
def test_a_configuration_is_checked_without_its_device(name: str) -> None:
    check_configuration(device(transport=name, address="127.0.0.1:1"))
    with pytest.raises(DeviceError, match=r"device\.key is /nowhere.*ssh-keygen"):
        check_configuration(device(transport=name, address="127.0.0.1:1", key="/nowhere"))


def test_every_export_holds_the_files_of_ncnn_compared_in_single_precision() -> None:
    runtime = exporting_runtime()
    assert isinstance(runtime, NcnnRuntime)
    options = runtime.settings()["options"]
    assert {option for option in options if "fp16" in option}
    assert not any(on for option, on in options.items() if "fp16" in option)


def test_runtimes_never_share_latencies() -> None:
    wheels = [open_runtime(device(runtime=name)).facts() for name in ("ncnn", "onnxruntime", "torch")]
    assert len({fingerprint(device(), {"cpu": "a"}, facts).id for facts in wheels}) == len(wheels)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"transport": "pigeon"}, "known are local, adb, ssh"),
        ({"runtime": "abacus"}, "known are ncnn"),
        ({"cores": [4711]}, r"\[4711\] do not exist"),
        ({"transport": "ssh"}, r"set device\.address"),
        ({"transport": "adb", "address": "a b:c"}, "expected a host name or address"),
        ({"options": {"use_magic": True}}, "use_magic"),
        ({"fusion": {"remove": [["Conv", "Softmax"]]}}, "no rules of ncnn"),
    ],
)
def test_check_names_what_is_known(values: dict[str, object], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        check(device(**values))


def test_host_can_be_used() -> None:
    check(device())


@pytest.mark.parametrize(
    ("values", "words"),
    [({"cores": [0, 8]}, r"no cores \[8\], only 0 to 7"), ({"threads": 9}, "the device has 8 cores")],
)
def test_cores_that_a_device_does_not_have_are_refused(values: dict[str, object], words: str) -> None:
    check_cores(device(transport="adb", threads=2, cores=[0, 7]), {"cores": 8})
    with pytest.raises(DeviceError, match=words):
        check_cores(device(transport="adb", **values), {"cores": 8})


def test_fusion_is_corrected_by_the_configuration() -> None:
    rules = fusion_rules(device(fusion={"add": [["Conv", "HardSwish"]], "remove": [["Conv", "Mish"]]}))
    assert ("Conv", "HardSwish") in rules.fuses
    assert ("Conv", "Mish") not in rules.fuses
    assert ("Add", "Relu") not in fusion_rules(device()).fuses


def test_fingerprint_changes_with_all_that_changes_a_latency() -> None:
    base = fingerprint(device(), {"cpu": "a", "memory_gb": 1}, {"name": "ncnn", "version": "1"})
    same = fingerprint(device(max_minutes=9), {"memory_gb": 2, "cpu": "a"}, {"version": "1", "name": "ncnn"})
    assert base.id == same.id
    others = [
        fingerprint(device(threads=2), {"cpu": "a"}, {"name": "ncnn", "version": "1"}),
        fingerprint(device(precision="fp16"), {"cpu": "a"}, {"name": "ncnn", "version": "1"}),
        fingerprint(device(cores=[0]), {"cpu": "a"}, {"name": "ncnn", "version": "1"}),
        fingerprint(device(), {"cpu": "b"}, {"name": "ncnn", "version": "1"}),
        fingerprint(device(), {"cpu": "a"}, {"name": "ncnn", "version": "2"}),
    ]
    assert len({base.id, *(other.id for other in others)}) == 6


def test_a_budget_of_energy_needs_a_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.profiling.host.lock.DeviceLock.is_held", lambda lock: False)
    monkeypatch.setattr("autotailor.profiling.endpoint.find_sensor", lambda transport: None)
    check(device(transport="local", runtime="torch"))
    with pytest.raises(DeviceError, match=r"device test: a budget .* limits energy, and the device has no sensor"):
        check(device(transport="local", runtime="torch"), needs_energy=True)
    monkeypatch.setattr("autotailor.profiling.endpoint.find_sensor", lambda transport: object())
    check(device(transport="local", runtime="torch"), needs_energy=True)


@parts
def test_an_unknown_name_is_refused_with_the_known_ones(
    kind: str, registry: dict[str, object], opened: Callable[[DeviceConfig], object], base: type
) -> None:
    with pytest.raises(DeviceError, match=rf"device board: device\.{kind}: unknown {kind} 'own'; known are "):
        opened(replace(DEVICE, **{kind: "own"}))  # type: ignore[arg-type]


@parts
@pytest.mark.parametrize("made", [None, 3, DEVICE], ids=["nothing", "number", "configuration"])
def test_a_function_that_makes_something_else_is_named(
    kind: str,
    registry: dict[str, object],
    opened: Callable[[DeviceConfig], object],
    base: type,
    made: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry, "own", lambda device: made)
    said = rf"device\.{kind}: {kind} 'own': what is registered made {type(made).__name__}, expected a {base.__name__}"
    with pytest.raises(DeviceError, match=said):
        opened(replace(DEVICE, **{kind: "own"}))  # type: ignore[arg-type]


@parts
def test_a_class_with_missing_methods_is_named_with_them(
    kind: str,
    registry: dict[str, object],
    opened: Callable[[DeviceConfig], object],
    base: type,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry, "own", type("Own", (base,), {}))
    with pytest.raises(DeviceError, match=rf"{kind} 'own': Own lacks .*; define all that {base.__name__} leaves"):
        opened(replace(DEVICE, **{kind: "own"}))  # type: ignore[arg-type]


def test_a_class_of_ones_own_is_opened_with_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    own = type("Own", (LocalTransport,), {})
    monkeypatch.setitem(TRANSPORTS, "own", own)
    assert type(open_transport(replace(DEVICE, transport="own"))) is own
