"""Memory of accelerators: which errors say that it is exhausted, and how to free what is no longer used."""

import gc

import torch

_SAID = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")


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
