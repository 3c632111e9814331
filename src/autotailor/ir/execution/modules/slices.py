"""The slices of shared weights that one SubNet computes with, as tensors with gradients of their own.

Autograd's gradient of ``weight.narrow(...)`` has the shape of the whole weight and is zero outside of the slice. A
small SubNet of a large network would spend a third of its time on these zeros. A slice that is a leaf of autograd has
a gradient of its own shape::

    with module.slices() as slices:
        gradients = slices.gradients(cross_entropy(module(images), labels))
    module.add_gradients(gradients)
    module.partial_gradients.hand_over()  # to the parameters, as gradients of whole weights

A slice of a convolution's weight that is not dense is copied, because the convolution would copy the slice itself, both
in the forward and in the backward pass.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from autotailor.ir.execution.weight_plan import WeightPlan, take_tensor
from autotailor.ir.operators.rule import Tensor


@dataclass(frozen=True, eq=False)
class SliceGradient:
    """The gradient of one slice.

    Attributes:
        weight: name of the weight in the graph.
        plan: what the slice takes of the weight.
        value: in the shape of the slice.
    """

    weight: str
    plan: WeightPlan
    value: Tensor


class Slices:
    """The slices that forward passes have asked for so far; each is taken once, as its weight is then."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[WeightPlan, Tensor]] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, name: str, weight: Tensor, plan: WeightPlan) -> Tensor:
        """What a plan takes of a weight; the weight itself where the plan takes all of it."""
        entry = self._taken.get(name)
        if entry is None:
            entry = self._taken[name] = plan, _leaf(weight, plan) if any(plan) else weight
        return entry[1]

    def gradients(self, loss: Tensor) -> tuple[SliceGradient, ...]:
        """Gradients of a loss in all trainable slices that it depends on; no two of them share memory."""
        trained = {name: (plan, leaf) for name, (plan, leaf) in self._taken.items() if leaf.requires_grad}
        if not trained:
            return ()
        values = torch.autograd.grad(loss, [leaf for _, leaf in trained.values()], allow_unused=True)
        gradients = zip(trained.items(), _apart(values), strict=True)
        return tuple(SliceGradient(name, plan, value) for (name, (plan, _)), value in gradients if value is not None)


def _apart(values: Iterable[Tensor | None]) -> Iterator[Tensor | None]:
    """The gradients, copied where autograd gave two slices the same one, as it does for x and y in x + y."""
    seen = set()
    for value in values:
        memory = None if value is None else value.untyped_storage()._cdata
        yield value.clone() if value is not None and memory in seen else value
        seen.add(memory)


def _leaf(weight: Tensor, plan: WeightPlan) -> Tensor:
    taken = take_tensor(weight.detach(), plan)
    if taken.ndim > 2 and not _is_dense(taken):
        taken = taken.clone(memory_format=torch.preserve_format)
    return taken.requires_grad_(weight.requires_grad)


def _is_dense(tensor: Tensor) -> bool:
    if tensor.is_contiguous():
        return True
    return tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
