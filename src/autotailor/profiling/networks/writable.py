"""Checks, before anything is trained, that a runtime can write and run every operator of a space.

The runtime itself is tried with every distinct operator and with two whole SubNets. Trained weights are not needed,
because the operators of a network do not depend on them.

The conversion is checked, too: the converted largest SubNet runs on one random image. A mistake in a conversion shows
only where it changes the outputs. Weights that are zero when training begins (gains of a branch's last normalisation,
layer scales) would hide a mistake, and are therefore drawn at random first.
"""

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import numpy_helper

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.fusion.places import Place
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes import RUNTIMES, open_runtime
from autotailor.profiling.runtimes.base import Runtime

WHOLE = "network"
"""The kind of a ``Missing`` when every single operator can be run but not the whole network."""

Array = npt.NDArray[np.float32]
TOLERANCE = 0.02
"""Largest error relative to the largest number. Rounding in a deep network stays far below, a mistake is far above."""


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
    examples: dict[str, tuple[str, str]] = {}
    for place in places:
        for feature in place.operators:
            if feature.id in reasons:
                examples.setdefault(feature.kind, (place.label, reasons[feature.id]))
    return examples


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


def conversion_failure(net: SuperNet, runtime: str) -> str:
    """Why a runtime converts the largest SubNet wrongly, or not at all; empty where the conversion is right.

    Args:
        net: the SuperNet; its weights may be random.
        runtime: name of the runtime, which runs on this computer, in single precision.
    """
    converter = open_runtime(DeviceConfig("conversion", runtime=runtime))
    rng = np.random.default_rng(0)
    image = rng.random(net.input_shape, dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="autotailor.conversion.") as folder:
        path = Path(folder) / "network.onnx"
        net.export_onnx(net.largest(), path)
        onnx.save(_without_zeros(onnx.load(path), rng), path)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, {session.get_inputs()[0].name: image})
        try:
            converter.convert(path, Path(folder))
            returned = converter.run(Path(folder), image)
        except AutoTailorError as error:
            return str(error).replace(f"{folder}/", "").replace(folder, "the network")
    outputs = returned if isinstance(returned, tuple) else (returned,)
    return next(filter(None, itertools.starmap(_mistake, zip(outputs, expected, strict=True))), "")


def _mistake(output: Array, expected: Array) -> str:
    """What is wrong with an output of one image, whose axes may be flat; empty where nothing is."""
    if output.size != expected.size:
        return f"the converted network has outputs of shape {list(output.shape)}, not {list(expected.shape)}"
    error = float(np.abs(output.reshape(expected.shape) - expected).max() / max(float(np.abs(expected).max()), 1e-30))
    if error <= TOLERANCE or not np.isfinite(expected).all():
        return ""
    return f"the converted network computes other outputs than onnxruntime (relative error {error:.2g})"


def _without_zeros(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """Draws at random each tensor of weights that is zero throughout. Inputs of instance normalisations stay."""
    kept = {name for node in model.graph.node if node.op_type == "InstanceNormalization" for name in node.input}
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in kept:
            value = numpy_helper.to_array(tensor)
            if value.size > 1 and not value.any():
                drawn = rng.uniform(0.05, 0.2, value.shape).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(drawn, tensor.name))
    return model
