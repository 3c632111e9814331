"""Modules and batches on the device that computes."""

import pytest
import torch
from torch import nn

from autotailor.compute.placement import CPU, device_of, is_out_of_memory, place, put, put_images
from fake_cuda import fake_cuda


def test_on_the_processor_a_batch_is_not_copied() -> None:
    images = torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    assert put(images, CPU) is images
    assert put_images(images, CPU).data_ptr() == images.data_ptr()


def test_images_come_channels_last() -> None:
    assert put_images(torch.zeros(2, 3, 4, 4), CPU).is_contiguous(memory_format=torch.channels_last)


def test_a_copy_to_cuda_starts_from_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    images, pinned = torch.zeros(2, 3, 4, 4), []
    with fake_cuda(monkeypatch) as cuda:
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor)
        there = put(images, cuda)
        assert there.device == cuda
        assert len(pinned) == 1
        assert put(there, cuda) is there
        assert len(pinned) == 1


def test_a_module_is_where_its_weights_are() -> None:
    assert device_of(nn.ReLU()) == CPU
    assert device_of(place(nn.Linear(2, 2), torch.device("meta"))) == torch.device("meta")
    assert device_of(nn.BatchNorm2d(3, affine=False).to("meta")) == torch.device("meta")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("MPS backend out of memory (MPS allocated: 9.00 GB)"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=["PyTorch", "MPS", "cuBLAS"],
)
def test_exhausted_memory_is_recognised(error: Exception) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("shapes cannot be multiplied"), ValueError("out of memory")], ids=repr)
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert not is_out_of_memory(error)
