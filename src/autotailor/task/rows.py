"""Outputs that are one row of logits for each picture: what is wrong with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SHARES = 1e-3  # rounding of a sum of probabilities


def wrong_shape(outputs: torch.Tensor, classes: int, images: str) -> str:
    """See ``Task.misfit``: why outputs for two images are no ``[2, classes]``; "" where they are."""
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
