"""CUDA without a GPU: PyTorch computes shapes and devices of fake CUDA tensors, and no values.

An operator whose tensors lie on two devices fails as it would on a GPU. What needs the driver or a value is replaced:
gradients are zeros, each number that is read is 0.5, and autocast does nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

CUDA = torch.device("cuda", 0)


@contextmanager
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """Within this context, tensors that are moved to the yielded device are fake.

    Modules must be made before: PyTorch cannot move a module with fake parameters, and leaves it where it is here.
    """
    move, array = nn.Module.to, torch.Tensor.numpy

    def to(module: nn.Module, *args: Any, **options: Any) -> nn.Module:
        is_fake = any(isinstance(parameter, FakeTensor) for parameter in module.parameters())
        return module if is_fake else move(module, *args, **options)

    def gradients(outputs: torch.Tensor, inputs: Sequence[torch.Tensor], **options: Any) -> tuple[torch.Tensor, ...]:
        assert outputs.device == CUDA
        return tuple(torch.zeros_like(tensor) for tensor in inputs)

    def numpy(tensor: torch.Tensor) -> Any:
        assert tensor.device.type == "cpu", "a tensor of an accelerator has no NumPy array"
        return np.zeros(tuple(tensor.shape)) if isinstance(tensor, FakeTensor) else array(tensor)

    with monkeypatch.context() as patch:
        patch.setattr(nn.Module, "to", to)
        patch.setattr(torch.autograd, "grad", gradients)
        patch.setattr(torch.Tensor, "numpy", numpy)
        patch.setattr(torch.Tensor, "item", lambda tensor: 0.5)
        patch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield CUDA
