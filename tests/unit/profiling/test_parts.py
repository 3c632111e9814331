"""Runtimes and transports by name: an unknown name, and what makes none, are refused with what was expected."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from autotailor.profiling import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes import RUNTIMES, open_runtime
from autotailor.profiling.runtimes.base import Runtime
from autotailor.profiling.transports import TRANSPORTS, LocalTransport, open_transport
from autotailor.profiling.transports.base import Transport

DEVICE = DeviceConfig("board")
PARTS = [("runtime", RUNTIMES, open_runtime, Runtime), ("transport", TRANSPORTS, open_transport, Transport)]
parts = pytest.mark.parametrize(("kind", "registry", "opened", "base"), PARTS, ids=["runtime", "transport"])


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
