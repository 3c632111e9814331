"""Resize and DepthToSpace, which change the number of an image's pixels."""

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import Layer, alone, writes

TYPES = {"nearest": 1, "linear": 2, "cubic": 3}
ALIGNED = {"align_corners": 1, "half_pixel": 0, "pytorch_half_pixel": 0}
"""ONNX's coordinate transformations to ncnn's parameter ``align_corner``."""


@writes("Resize")
def resize(feature: OperatorFeature) -> Layer:
    """Interpolates height and width.

    Parameters 3 and 4 are the output's height and width; 6 tells whether corner pixels stay at the corners.
    """
    alone(feature)
    source, target = feature.inputs[0], feature.outputs[0]
    mode, at = str(feature.attribute("mode")), str(feature.attribute("coordinate_transformation_mode"))
    if len(source) != 4 or source[:2] != target[:2] or not _is_known(feature, mode, at):
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot resize an activation of shape {list(source)} to {list(target)} by "
            f"{mode} interpolation at {at} coordinates; it takes the nearest pixel of whole multiples, and linear and "
            "cubic interpolation at half_pixel or align_corners coordinates"
        )
    aligned = 0 if mode == "nearest" else ALIGNED[at]
    return Layer("Interp", ((0, TYPES[mode]), (3, target[2]), (4, target[3]), (6, aligned)))


def _is_known(feature: OperatorFeature, mode: str, at: str) -> bool:
    """Whether ncnn computes the same as ONNX; ncnn's nearest pixel is the one at floor(x / scale).

    A side of one pixel is the first pixel at ``pytorch_half_pixel`` coordinates, and the middle one in ncnn.
    """
    if mode != "nearest":
        is_first = at == "pytorch_half_pixel" and 1 in feature.outputs[0][2:]
        return mode in TYPES and at in ALIGNED and not is_first
    if at == "asymmetric" and feature.attribute("nearest_mode") == "floor":
        return True
    grows = all(t % s == 0 for s, t in zip(feature.inputs[0][2:], feature.outputs[0][2:], strict=True))
    return grows and at in ("half_pixel", "pytorch_half_pixel") and "round" in str(feature.attribute("nearest_mode"))


@writes("DepthToSpace")
def depth_to_space(feature: OperatorFeature) -> Layer:
    """Turns channels into blocks of pixels; parameter 1 tells whether the block's axes come before the channels."""
    alone(feature)
    first = int(feature.attribute("mode", "DCR") == "DCR")
    return Layer("PixelShuffle", ((0, int(feature.attribute("blocksize"))), (1, first)))
