"""Adaptive average pooling to a size that does not divide the map, in a form that PyTorch's classic exporter knows.

The classic exporter can only export adaptive pooling whose output size divides the map. VGG and AlexNet of torchvision
need other sizes for all images but those that they were made for. When n pixels become k, output pixel i averages the
input pixels from ``floor(i n / k)`` to ``ceil((i + 1) n / k)``. The average over both axes is ``Y = R X C``, with a
constant matrix R for the rows and C for the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

Tensor = torch.Tensor


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
    asked = (output_size, output_size) if output_size is None or isinstance(output_size, int) else output_size
    wanted = [n if k is None else int(k) for n, k in zip(sizes, asked, strict=True)]
    if all(n % k == 0 for n, k in zip(sizes, wanted, strict=True)):
        return F.adaptive_avg_pool2d(x, output_size)
    rows, columns = (averages(n, k).to(x) for n, k in zip(sizes, wanted, strict=True))
    narrow = torch.matmul(x, columns)
    return torch.matmul(narrow.transpose(-1, -2), rows).transpose(-1, -2)


def averages(n: int, k: int) -> Tensor:
    """Matrix ``[n, k]`` whose column i averages the input pixels of output pixel i."""
    matrix = torch.zeros(n, k)
    for i in range(k):
        start, end = i * n // k, -(-(i + 1) * n // k)
        matrix[start:end, i] = 1 / (end - start)
    return matrix
