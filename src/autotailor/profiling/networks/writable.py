"""Checks, before anything is trained, that a runtime can write and run every operator of a space.

The runtime itself is tried with every distinct operator and with two whole SubNets. Trained weights are not needed,
because the operators of a network do not depend on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.fusion.places import Place
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.networks.fidelity import conversion_failure
from autotailor.profiling.runtimes import RUNTIMES, open_runtime
from autotailor.profiling.runtimes.base import Runtime

WHOLE = "network"
"""The kind of a ``Missing`` when every single operator can be run but not the whole network."""


@dataclass(frozen=True)
class Missing:
    """A kind of operator that a runtime cannot write or run.

    Attributes:
        kind: the operators' kind.
        operators: how many distinct operators of this kind the runtime lacks.
        node: a node of the network that is such an operator.
        reason: why the runtime cannot write or run that node.
    """

    kind: str
    operators: int
    node: str
    reason: str

    def __str__(self) -> str:
        if self.kind == WHOLE:
            return f"the network as a whole (for instance {self.node}): {self.reason}"
        many = "1 operator" if self.operators == 1 else f"{self.operators} operators"
        return f"{self.kind} ({many}, for instance {self.node}): {self.reason}"


def check_writable(net: SuperNet, device: DeviceConfig) -> None:
    """Refuses a device whose runtime cannot run every SubNet.

    Args:
        net: the SuperNet; its weights may be random.
        device: the device that the SuperNet is for; nothing connects to it.

    Raises:
        DeviceError: the runtime cannot be used.
        ProfilingError: the runtime lacks operators; the message lists each kind once, and runtimes that lack none.
    """
    runtime = open_runtime(device)
    missing = missing_operators(net, runtime)
    if not missing:
        return
    able = able_runtimes(net, device)
    advice = (
        f"Runtimes that can run all of the network: {', '.join(able)}; for instance, set device.runtime={able[0]}"
        if able
        else f"None of the other runtimes ({', '.join(sorted(set(RUNTIMES) - {device.runtime}))}) can run all of the "
        "network on this device, either: leave these operators out of the network"
    )
    listed = "\n".join(f"  {each}" for each in missing)
    head = f"device {device.name}: the runtime {runtime.name} cannot run the network {net.name}. It lacks"
    raise ProfilingError(f"{head}\n{listed}\n{advice}")


def missing_operators(net: SuperNet, runtime: Runtime) -> tuple[Missing, ...]:
    """Operators of a space that a runtime cannot run, the kind with most operators first; empty if none are."""
    places = net.places(runtime.fusion)
    distinct = {feature.id: feature for place in places for feature in place.operators}
    reasons = runtime.refusals(list(distinct.values()))
    if not reasons:
        return tuple(_whole(net, runtime))
    counts = Counter(distinct[key].kind for key in reasons)
    examples = _examples(places, reasons)
    return tuple(Missing(kind, count, *examples[kind]) for kind, count in counts.most_common())


def _examples(places: Iterable[Place], reasons: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Each kind of refused operator, with the first node of that kind and the reason of the refusal."""
    found: dict[str, tuple[str, str]] = {}
    for place in places:
        for feature in place.operators:
            if feature.id in reasons:
                found.setdefault(feature.kind, (place.label, reasons[feature.id]))
    return found


def _whole(net: SuperNet, runtime: Runtime) -> Iterable[Missing]:
    """Tries to write the largest and the smallest SubNet as one network each, and to convert the largest SubNet."""
    for subnet in (net.largest(), net.smallest()):
        try:
            runtime.in_place(
                subnet.id, net.sequence(subnet, runtime.fusion), net.shapes(subnet)[net.graph.input][1:], ()
            )
        except AutoTailorError as error:
            yield Missing(WHOLE, 1, f"SubNet {subnet.id}", str(error))
            return
    if reason := conversion_failure(net, runtime.name):
        yield Missing(WHOLE, 1, f"SubNet {net.largest().id}", reason)


def able_runtimes(net: SuperNet, device: DeviceConfig) -> tuple[str, ...]:
    """Names of the other runtimes that can be used for a device and run every operator; each one is really tried."""
    able = []
    for name in sorted(set(RUNTIMES) - {device.runtime}):
        try:
            runtime = open_runtime(replace(device, runtime=name, precision="fp32", options={}, fusion={}))
            runtime.check()
        except AutoTailorError:
            continue
        if not missing_operators(net, runtime):
            able.append(name)
    return tuple(able)
