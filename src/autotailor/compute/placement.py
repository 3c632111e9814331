"""Moves modules and batches to the device that computes, and frees its memory; on the processor nothing moves."""

import gc
from itertools import chain
from typing import TypeVar

import torch
from torch import nn

CPU = torch.device("cpu")
Module = TypeVar("Module", bound=nn.Module)

_SAID = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")


def device_of(module: nn.Module) -> torch.device:
    """The device of a module's weights; the processor for a module without weights."""
    return next((tensor.device for tensor in chain(module.parameters(), module.buffers())), CPU)


def place(module: Module, device: torch.device) -> Module:
    """Moves a module to a device, in place, with the weights of convolutions in the order channels last."""
    return module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def put(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor on a device; a tensor that is there already is returned itself.

    A copy to a CUDA device starts from pinned memory, so that this thread goes on while the copy runs. Work on the
    device waits for the copy, because both are on one stream.
    """
    if tensor.device == device:
        return tensor
    if device.type == "cuda" and tensor.device == CPU:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def put_images(images: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Images ``[n, 3, h, w]`` on a device, channels last."""
    return put(images, device).contiguous(memory_format=torch.channels_last)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that an accelerator has no memory left.

    PyTorch raises ``OutOfMemoryError``. The libraries cuBLAS and cuDNN allocate memory of their own, and Apple's Metal
    has its own allocator; PyTorch reports these as ``RuntimeError`` with a text.
    """
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _SAID)


def free_memory(device: torch.device) -> None:
    """Returns unused memory of a device to the driver; tensors in circles of references are collected first."""
    gc.collect()
    if device.type != "cpu":
        torch.get_device_module(device).empty_cache()
