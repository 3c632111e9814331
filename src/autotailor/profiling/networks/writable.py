"""Whether a runtime can write and run every operator of a space: asked before anything is trained for it.

The answer comes from the runtime itself, for every distinct operator and for two whole SubNets. No weights are needed:
what a network consists of does not depend on them.
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
"""Kind of what is missing where each operator by itself is not."""


@dataclass(frozen=True)
class Missing:
    """A kind of operator that a runtime cannot write or run.

    Attributes:
        kind: of the operators.
        operators: how many distinct operators of that kind.
        node: a node of the network that is one of them.
        reason: why that one cannot be had.
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
        device: where it shall run; it is not asked.

    Raises:
        DeviceError: the runtime cannot be used.
        ProfilingError: everything that the runtime lacks, each kind of operator once, and which runtimes lack nothing.
    """
    runtime = open_runtime(device)
    missing = missing_operators(net, runtime)
    if not missing:
        return
    able = able_runtimes(net, device)
    advice = (
        f"What can run all of it there: {', '.join(able)}; for instance device.runtime={able[0]}"
        if able
        else f"None of the other runtimes ({', '.join(sorted(set(RUNTIMES) - {device.runtime}))}) can run all of it "
        "there, either: leave these operators out of the network"
    )
    listed = "\n".join(f"  {each}" for each in missing)
    head = f"device {device.name}: the runtime {runtime.name} cannot run the network {net.name}. It lacks"
    raise ProfilingError(f"{head}\n{listed}\n{advice}")


def missing_operators(net: SuperNet, runtime: Runtime) -> tuple[Missing, ...]:
    """What a runtime lacks for a space, the kinds with most operators first; nothing where it can run all of it."""
    places = net.places(runtime.fusion)
    distinct = {feature.id: feature for place in places for feature in place.operators}
    reasons = runtime.refusals(list(distinct.values()))
    if not reasons:
        return tuple(_whole(net, runtime))
    counts = Counter(distinct[key].kind for key in reasons)
    examples = _examples(places, reasons)
    return tuple(Missing(kind, count, *examples[kind]) for kind, count in counts.most_common())


def _examples(places: Iterable[Place], reasons: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Kind to the first node whose operator cannot be had, and the reason."""
    found: dict[str, tuple[str, str]] = {}
    for place in places:
        for feature in place.operators:
            if feature.id in reasons:
                found.setdefault(feature.kind, (place.label, reasons[feature.id]))
    return found


def _whole(net: SuperNet, runtime: Runtime) -> Iterable[Missing]:
    """The largest and the smallest SubNet, written as one network; the largest as the runtime converts it."""
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
    """Names of the other runtimes that can be used for a device and lack nothing; each is really tried."""
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
