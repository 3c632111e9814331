"""Settings of PyTorch that make training and evaluation give the same numbers in every run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from autotailor.accuracy.allocator import keep_freed_memory
from autotailor.compute.placement import CPU


@contextmanager
def deterministic(threads: int, device: torch.device = CPU) -> Iterator[None]:
    """Uses deterministic algorithms and a fixed number of threads; restores PyTorch's global state afterwards.

    On the processor, an operator without a deterministic algorithm is an error. On an accelerator such an operator runs
    nevertheless, and PyTorch warns of it by name, because some networks could not be trained there at all.

    Convolutions and matrix products in fp32 keep all bits of fp32 on CUDA: TensorFloat-32, which PyTorch otherwise uses
    for convolutions, rounds their inputs to 10 bits. Whoever wants the speed of tensor cores trains in bf16 or fp16.

    Args:
        threads: of PyTorch on the processor.
        device: that computes.
    """
    keep_freed_memory()
    threads_before = torch.get_num_threads()
    algorithms = torch.get_deterministic_debug_mode()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.set_num_threads(threads)
    # `torch.use_deterministic_algorithms` would import PyTorch's compiler, too: nearly a second in each process.
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else "warn")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        with torch.random.fork_rng(devices=_with_random_state(device)), _full_fp32(device):
            yield
    finally:
        torch.set_num_threads(threads_before)
        torch.set_deterministic_debug_mode(algorithms)
        torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]


def _with_random_state(device: torch.device) -> list[torch.device]:
    """The CUDA devices whose random state is restored; PyTorch itself restores that of the processor."""
    return [device] if device.type == "cuda" and torch.cuda.is_available() else []


@contextmanager
def _full_fp32(device: torch.device) -> Iterator[None]:
    """Switches TensorFloat-32 off, and gives cuBLAS the fixed workspace with which its sums have a fixed order."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it at its first use in this process
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before
