"""Adaptive average pooling to a size that does not divide the map, in a form that PyTorch's classic exporter knows.

Output pixel i averages the input pixels from ``floor(i n / k)`` to ``ceil((i + 1) n / k)``, of n to k pixels. The
average over both axes is ``Y = R X C`` with a constant matrix for the rows and one for the columns. VGG and AlexNet of
torchvision end so for all images but those they were made for; the exporter knows sizes that divide the map only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

Tensor = torch.Tensor


class AdaptivePools(TorchFunctionMode):
    """While it is entered, adaptive average pooling of images is written as products with matrices where need be."""

    def __torch_function__(
        self, function: Callable[..., Any], _: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is F.adaptive_avg_pool2d:
            x, output_size = (*args, *(kwargs[name] for name in ("input", "output_size") if name in kwargs))
            return _pool(x, output_size)
        return function(*args, **kwargs)


def _pool(x: Tensor, output_size: Any) -> Tensor:
    """``[..., h, w]`` to ``[..., *output_size]``; None keeps an axis, one number is for both."""
    sizes = [int(size) for size in x.shape[-2:]]
    asked = (output_size, output_size) if output_size is None or isinstance(output_size, int) else output_size
    wanted = [n if k is None else int(k) for n, k in zip(sizes, asked, strict=True)]
    if all(n % k == 0 for n, k in zip(sizes, wanted, strict=True)):
        return F.adaptive_avg_pool2d(x, output_size)
    rows, columns = (averages(n, k).to(x) for n, k in zip(sizes, wanted, strict=True))
    narrow = torch.matmul(x, columns)
    return torch.matmul(narrow.transpose(-1, -2), rows).transpose(-1, -2)


def averages(n: int, k: int) -> Tensor:
    """Matrix ``[n, k]`` whose column i averages what output pixel i covers."""
    matrix = torch.zeros(n, k)
    for i in range(k):
        start, end = i * n // k, -(-(i + 1) * n // k)
        matrix[start:end, i] = 1 / (end - start)
    return matrix
