"""Exponential moving average of a network's weights over the steps of its training.

After step n (from 1) the average a becomes d a + (1 - d) w, with d = min(decay, (1 + n) / (10 + n)). The smaller d of
the first steps lets the average forget the weights that the training began with, as in TensorFlow's
ExponentialMovingAverage.
Statistics of BatchNorm are averaged like weights; integers are taken over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

Values = dict[str, torch.Tensor]


class Average:
    """The average of a module's state, which begins as the module's present state.

    Args:
        module: in training; its parameters stay where they lie in memory.
        decay: share of the average that each step leaves, below 1.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self._module, self._decay = module, decay
        self.values: Values = _copied(module)

    def load(self, values: Mapping[str, torch.Tensor]) -> None:
        """Continues from an average of the same module."""
        for name, value in values.items():
            self.values[name].copy_(value)

    @torch.no_grad()
    def update(self, steps: int) -> None:
        """Takes the module's present state in.

        Args:
            steps: of the training so far, at least 1.
        """
        update = get_ema_multi_avg_fn(min(self._decay, (1 + steps) / (10 + steps)))  # type: ignore[no-untyped-call]
        present = self._module.state_dict()
        floating = [name for name, value in present.items() if value.is_floating_point()]
        update([self.values[name] for name in floating], [present[name] for name in floating], steps)
        for name in present.keys() - set(floating):
            self.values[name].copy_(present[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within this context the module has the average for its state."""
        present = _copied(self._module)
        self._module.load_state_dict(self.values)
        try:
            yield
        finally:
            self._module.load_state_dict(present)

    def apply(self) -> None:
        """Gives the module the average for its state."""
        self._module.load_state_dict(self.values)


def _copied(module: nn.Module) -> Values:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
