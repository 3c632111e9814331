"""Outputs that are one row of logits for each picture: what tasks on them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SHARES = 1e-3  # rounding of a sum of probabilities
WORST = 100.0
"""Nats, about the largest loss of a probability that fp32 can hold. A larger loss, and that of outputs which are no
numbers, counts as this, so that a few images do not decide about a mean."""


def bounded(losses: torch.Tensor) -> torch.Tensor:
    """Losses of pictures ``[n]`` in nats, none above ``WORST``, and none NaN."""
    return losses.nan_to_num(nan=WORST).clamp(max=WORST)


def one_by_one(outputs: Any) -> list[Any]:
    """The outputs for each picture, as those of a batch of one."""
    if isinstance(outputs, tuple | list):
        return [*zip(*(each.split(1) for each in outputs), strict=True)]
    return [*outputs.split(1)]


def same_largest(outputs: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """See ``Task.agree``: whether the same output of a picture is the largest."""
    return outputs.argmax(dim=1) == others.argmax(dim=1)


def wrong_shape(outputs: Any, classes: int, images: str) -> str:
    """See ``Task.misfit``: why outputs for two images are no ``[2, classes]``; "" where they are."""
    if not hasattr(outputs, "shape"):
        return f"returns a {type(outputs).__name__}; expected one tensor of logits [n, {classes}]"
    if tuple(outputs.shape) == (2, classes):
        return ""
    return (
        f"gives {list(outputs.shape)} for 2 images, expected [2, {classes}]: {images} has {classes} classes; choose "
        f"the data of the network's classes, or give a network of {classes} (model.num_classes sets the head of a timm "
        f"network or factory that is trained here)"
    )


def probabilities(outputs: torch.Tensor) -> str:
    """See ``Task.misfit``: what to do where rows are shares of one; "" where they are not."""
    if not ((outputs >= 0).all() and (outputs.sum(1) - 1).abs().max() < SHARES):
        return ""
    return (
        "returns probabilities, but training needs logits; remove its Softmax (autotailor sets the Softmax aside only "
        "in a compiled network)"
    )


def first(outputs: Any) -> torch.Tensor:
    """The tensor that a network returns, of several the first."""
    tensor: torch.Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
    return tensor


def single(outputs: Any) -> torch.Tensor | None:
    """The tensor that a network returns, also as a tuple of one; None where it returns several."""
    whole = outputs if isinstance(outputs, tuple) else (outputs,)
    return whole[0] if len(whole) == 1 else None
