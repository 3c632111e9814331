"""Checks that a runtime converts a whole network right: the largest SubNet runs on one random image.

A mistake in a conversion shows only where it changes the outputs. Weights that are zero when training begins (gains of
a branch's last normalisation, layer scales) would hide a mistake, and are therefore drawn at random first.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import numpy_helper

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.runtimes import open_runtime

Array = npt.NDArray[np.float32]
TOLERANCE = 0.02
"""Largest error relative to the largest number. Rounding in a deep network stays far below, a mistake is far above."""


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
        wanted = session.run(None, {session.get_inputs()[0].name: image})
        try:
            converter.convert(path, Path(folder))
            returned = converter.run(Path(folder), image)
        except AutoTailorError as error:
            return str(error).replace(f"{folder}/", "").replace(folder, "the network")
    outputs = returned if isinstance(returned, tuple) else (returned,)
    return next(filter(None, itertools.starmap(_mistake, zip(outputs, wanted, strict=True))), "")


def _mistake(found: Array, wanted: Array) -> str:
    """What is wrong with an output of one image, whose axes may be flat; empty where nothing is."""
    if found.size != wanted.size:
        return f"the converted network has outputs of shape {list(found.shape)}, not {list(wanted.shape)}"
    error = float(np.abs(found.reshape(wanted.shape) - wanted).max() / max(float(np.abs(wanted).max()), 1e-30))
    if error <= TOLERANCE or not np.isfinite(wanted).all():
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
