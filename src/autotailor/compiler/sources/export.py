"""Exports a PyTorch module as ONNX, with BatchNorm where the module has it.

Adaptive average pooling is exported in a form that PyTorch's classic exporter knows. That exporter can only export
adaptive pooling whose output size divides the map. VGG and AlexNet of torchvision need other sizes for all images but
those that they were made for. When n pixels become k, output pixel i averages the input pixels from ``floor(i n / k)``
to ``ceil((i + 1) n / k)``. The average over both axes is ``Y = R X C``, with a constant matrix R for the rows and C for
the columns.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx
import onnx_ir as ir
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from autotailor.compiler.library import quiet, reason
from autotailor.compiler.passes.layout import RGB
from autotailor.compiler.sources.outputs import name_outputs
from autotailor.ir.errors import GraphError
from autotailor.ir.graph import INPUT, OUTPUT

EXPORT_OPSET = 17
DYNAMO_OPSET = 20
DEFAULT_INPUT = (3, 224, 224)

Tensor = torch.Tensor


def export_module(network: nn.Module, resolution: int | None) -> ir.Model:
    """Exports a module in evaluation mode with BatchNorm and batch 1: by tracing or, if that fails, by torch.export.

    Raises:
        GraphError: neither of PyTorch's exporters can export the module.
    """
    channels, *axes = _own_input(network)
    parameter = next(network.parameters(), torch.empty(0))
    size = (resolution, resolution) if resolution and len(axes) == 2 else axes
    image = torch.zeros(1, RGB, *size, device=parameter.device, dtype=parameter.dtype)
    with evaluating(network), warnings.catch_warnings(), quiet(), _printing_no_graph():
        warnings.simplefilter("ignore")
        if channels != RGB and not _reads(network, image):
            image = image.new_zeros(1, channels, *size)
        try:
            model = _trace(network, image)
        except GraphError:
            raise
        except Exception as error:
            model = _capture(network, image, error)
        name_outputs(network, model, image)
        return model


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Sets a module to evaluation mode, and afterwards each of its parts to the mode that the part had."""
    modes = [(module, module.training) for module in network.modules()]
    try:
        network.eval()
        yield
    finally:
        for module, training in modes:  # parents first: a parent's mode is also set in its parts
            if module.training != training:
                module.train(training)


@contextmanager
def _printing_no_graph() -> Iterator[None]:
    """Keeps the classic exporter from printing its graph where it fails: `inspect --yaml` prints a file to that stream.

    The exporter switches this log on at each call, whatever its arguments, so its switch does nothing meanwhile.
    """
    switch = torch._C._jit_set_onnx_log_enabled
    switch(False)
    torch._C._jit_set_onnx_log_enabled = lambda enabled: None
    try:
        yield
    finally:
        torch._C._jit_set_onnx_log_enabled = switch


@torch.no_grad()
def _reads(network: nn.Module, image: torch.Tensor) -> bool:
    """Whether a network accepts images of that shape."""
    try:
        network(image)
    except Exception:
        return False
    return True


def _trace(network: nn.Module, image: torch.Tensor) -> ir.Model:
    """Exports with PyTorch's classic exporter, which records each operator while the network runs."""
    buffer = io.BytesIO()
    with AdaptivePools():
        torch.onnx.export(
            network,
            (image,),
            buffer,  # type: ignore[arg-type]  # the classic exporter also writes to streams
            dynamo=False,
            opset_version=EXPORT_OPSET,
            do_constant_folding=False,
            input_names=[INPUT],
            output_names=[OUTPUT],
        )
    return ir.from_proto(onnx.load_from_string(buffer.getvalue()))


def _capture(network: nn.Module, image: torch.Tensor, error: Exception) -> ir.Model:
    """Exports with PyTorch's newer exporter, without its optimiser, because the optimiser would fold BatchNorm.

    Args:
        network: to export.
        image: ``[1, 3, R, R]``.
        error: of the classic exporter, for the message.
    """
    try:
        program = torch.onnx.export(
            network,
            (image,),
            dynamo=True,
            opset_version=DYNAMO_OPSET,
            optimize=False,
            verbose=False,
            input_names=[INPUT],
            output_names=[OUTPUT],
        )
        assert program is not None
        model: ir.Model = program.model
    except Exception:
        own = list(_own_input(network)[1:])
        is_of_size = not _reads(network, image) and _reads(network, image.new_zeros((*image.shape[:2], *own)))
        remedy = f"; the network is made for {own[0]}x{own[1]} pixels, try those" if is_of_size else ""
        raise GraphError(
            f"{type(network).__name__} cannot be exported from an image of shape {list(image.shape)}: "
            f"{reason(error)}{remedy}"
        ) from error
    return model


def _own_input(network: nn.Module) -> tuple[int, ...]:
    """Channels and axes that a network states (``input_size``, as timm's do in ``default_cfg``), or its first ones."""
    config = getattr(network, "default_cfg", None) or {}
    if stated := config.get("input_size") or getattr(network, "input_size", None):
        return tuple(int(size) for size in stated)
    first = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
    return (first.in_channels if first else DEFAULT_INPUT[0], *DEFAULT_INPUT[1:])


class AdaptivePools(TorchFunctionMode):
    """Inside this context, adaptive average pooling becomes products of matrices where sizes do not divide."""

    def __torch_function__(
        self, function: Callable[..., Any], _: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is F.adaptive_avg_pool2d:
            x, output_size = (*args, *(kwargs[name] for name in ("input", "output_size") if name in kwargs))
            return _pool(x, output_size)
        return function(*args, **kwargs)


def _pool(x: Tensor, output_size: Any) -> Tensor:
    """Pools ``[..., h, w]`` to ``[..., *output_size]``; None keeps the size of an axis, one number holds for both."""
    sizes = [int(size) for size in x.shape[-2:]]
    pair = (output_size, output_size) if output_size is None or isinstance(output_size, int) else output_size
    target = [n if k is None else int(k) for n, k in zip(sizes, pair, strict=True)]
    if all(n % k == 0 for n, k in zip(sizes, target, strict=True)):
        return F.adaptive_avg_pool2d(x, output_size)
    rows, columns = (averages(n, k).to(x) for n, k in zip(sizes, target, strict=True))
    narrow = torch.matmul(x, columns)
    return torch.matmul(narrow.transpose(-1, -2), rows).transpose(-1, -2)


def averages(n: int, k: int) -> Tensor:
    """Matrix ``[n, k]`` whose column i averages the input pixels of output pixel i."""
    matrix = torch.zeros(n, k)
    for i in range(k):
        start, end = i * n // k, -(-(i + 1) * n // k)
        matrix[start:end, i] = 1 / (end - start)
    return matrix
