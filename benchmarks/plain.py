"""The plain PyTorch module of a SubNet's architecture: the network's own code with the SubNet's weights."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

Array = npt.NDArray[Any]
VIEWS = ("qkv", "head_dim", "num_heads")
"""Attributes by which an attention layer of timm is recognised."""


class Passed(nn.Module):
    """Stands where a block was removed."""

    def forward(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """The input."""
        return x


def draw(network: nn.Module) -> nn.Module:
    """Draws every weight and statistic, so that a weight can be found in the graph by its values."""
    generator = torch.Generator().manual_seed(0)
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            noise = torch.randn(tensor.shape, generator=generator)
            scale = 0.5 / max(1.0, tensor[0].numel()) ** 0.5 if tensor.ndim > 1 else 0.1
            offset = 1.0 if tensor.ndim == 1 and not name.endswith(("bias", "mean", "gamma")) else 0.0
            tensor.copy_(offset + (noise.abs() if name.endswith("var") else noise) * scale)
    return network


def plain_module(network: nn.Module, net: SuperNet, subnet: SubNet) -> nn.Module:
    """A copy of the network's module whose weights are those of a SubNet, and which lacks the removed blocks.

    Args:
        network: that ``net`` was compiled from, after ``draw``.
        net: the SuperNet.
        subnet: whose architecture is wanted.
    """
    plain = copy.deepcopy(network)
    whole, sliced = net.graph.weights, net.slice(subnet).weights
    gone = set()
    for name, tensor in [*plain.named_parameters(), *plain.named_buffers()]:
        if not tensor.is_floating_point():
            continue
        found, transposed = _find(name, tensor.detach().numpy(), whole)
        if found not in sliced:
            gone.add(name)
            continue
        value = sliced[found].T if transposed else sliced[found]
        tensor.data = torch.from_numpy(np.array(value.reshape(-1) if tensor.ndim == 1 else value))
    _remove(plain, gone)
    for module in plain.modules():
        _resize(module)
    return plain


def _find(name: str, value: Array, weights: Any) -> tuple[str, bool]:
    """Name of a weight in the graph, and whether the graph has the weight transposed."""
    if name in weights and weights[name].shape == value.shape:
        return name, False
    for other, weight in weights.items():
        if weight.size == value.size and np.array_equal(weight.reshape(-1), value.reshape(-1)):
            return other, False
        if weight.ndim == 2 and weight.T.shape == value.shape and np.array_equal(weight.T, value):
            return other, True
    raise LookupError(f"weight {name} {value.shape} is not in the graph")


def _remove(network: nn.Module, gone: set[str]) -> None:
    """Replaces the outermost modules of which every weight is gone."""
    for name, module in list(network.named_modules()):
        own = [f"{name}.{weight}" for weight, _ in [*module.named_parameters(), *module.named_buffers()]]
        own = [weight for weight in own if not weight.endswith("num_batches_tracked")]
        if name and own and gone.issuperset(own):
            network.set_submodule(name, Passed())
            gone = gone - set(own)
    if gone:
        raise LookupError(f"weights without a removed block: {sorted(gone)}")


def _resize(module: nn.Module) -> None:
    """Sets what a module knows of its shapes besides its weights."""
    if isinstance(module, nn.Conv2d):
        out, inner, *kernel = module.weight.shape
        if module.groups > 1:
            module.groups = out // (module.out_channels // module.groups)
        pads = [(old - new) // 2 * d for old, new, d in zip(module.kernel_size, kernel, module.dilation, strict=True)]
        module.padding = tuple(pad - less for pad, less in zip(module.padding, pads, strict=True))
        module.kernel_size, module.out_channels, module.in_channels = tuple(kernel), out, inner * module.groups
    elif isinstance(module, nn.LayerNorm):
        module.normalized_shape = tuple(module.weight.shape)
    elif all(hasattr(module, name) for name in VIEWS):
        module.num_heads = module.qkv.weight.shape[0] // 3 // module.head_dim
        module.attn_dim = module.num_heads * module.head_dim
    elif hasattr(module, "strict_img_size"):
        module.strict_img_size, module.img_size = False, None
