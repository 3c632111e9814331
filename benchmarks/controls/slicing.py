"""The networks of the controls: scaled uniformly, and sliced by importance, both to a number of MACs.

``sliced`` is the paper's NestDNN*: Torch-Pruning (Fang et al., DepGraph, CVPR 2023) removes the channels of smallest L1
norm (Li et al., 2017), the same share of every layer, as NestDNN does (Fang et al., 2018).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

STEPS = 40
"""Widths are tried in steps of this part of the full width."""


def flops(network: nn.Module, side: int) -> int:
    """Floating-point operations of a network for one image of ``side`` times ``side`` pixels."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network.eval()(torch.zeros(1, 3, side, side))
    return int(counter.get_total_flops())


def narrowest(cost: Callable[[float], float], target: float) -> float:
    """The smallest width in (0, 1] down to which no width costs less than a target.

    Widths are tried from the widest down, because cost does not always rise with width: Torch-Pruning leaves a layer as
    it is where no channel of the layer would be left.
    """
    for step in range(STEPS, 0, -1):
        if cost(step / STEPS) < target:
            return min(1.0, (step + 1) / STEPS)
    return 1 / STEPS


def sliced(network: nn.Module, width: float, side: int, num_classes: int, divisor: int) -> nn.Module:
    """A copy of a trained network with the most important channels of each layer.

    Args:
        network: images ``[n, 3, side, side]`` to logits.
        width: share of the channels that stays.
        side: of the images, pixels.
        num_classes: linear layers with as many outputs keep their outputs.
        divisor: numbers of channels are rounded to its multiples, or to a quarter of a head of attention where that
            is less.
    """
    import torch_pruning as tp

    network = copy.deepcopy(network)
    kept = [m for m in network.modules() if isinstance(m, nn.Linear) and m.out_features == num_classes]
    attentions = [m for m in network.modules() if hasattr(m, "qkv") and hasattr(m, "num_heads")]
    for attention in attentions:
        attention.fused_attn = False  # Torch-Pruning follows single operators
    pruner = tp.pruner.BasePruner(
        network,
        torch.zeros(1, 3, side, side),
        importance=tp.importance.GroupMagnitudeImportance(p=1),
        pruning_ratio=1 - width,
        ignored_layers=kept,
        num_heads={attention.qkv: attention.num_heads for attention in attentions},
        round_to=math.gcd(divisor, *(max(1, attention.head_dim // 4) for attention in attentions)),
    )
    pruner.step()
    for attention in attentions:
        _resize(attention, pruner.num_heads[attention.qkv])
    return network


def _resize(attention: Any, heads: int) -> None:
    """Tells an attention layer of timm how wide it is now."""
    attention.num_heads = heads
    attention.head_dim = attention.qkv.out_features // (3 * heads)
    attention.scale = attention.head_dim**-0.5
    attention.attn_dim = attention.head_dim * heads
    attention.fused_attn = True
