"""Random numbers for transforms of torchvision, which draw from PyTorch's global generator.

Several threads prepare images while the training itself draws from the global generator. To seed that generator for
each image would therefore make results depend on chance. In a block of ``drawing`` the calling thread alone draws from
a generator of its own, and the global generator is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from autotailor.data.seeding import generator

DRAWS = frozenset(
    (
        torch.rand,
        torch.randint,
        torch.randperm,
        torch.multinomial,
        torch.Tensor.normal_,
        torch.Tensor.uniform_,
        torch._sample_dirichlet,  # of torch.distributions.Beta
    )
)
"""The functions by which the transforms of this folder draw."""


class _Drawing(TorchFunctionMode):
    """Gives a generator to every function that draws; PyTorch keeps such a mode for each thread alone."""

    def __init__(self, random: torch.Generator) -> None:
        super().__init__()
        self._random = random

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if func in DRAWS:
            given["generator"] = self._random
        return func(*args, **given)


def drawing(*words: int) -> AbstractContextManager[Any]:
    """A block in which PyTorch's functions draw from a generator that is seeded by all words."""
    return _Drawing(generator(*words))
