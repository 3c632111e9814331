"""Networks compiled by ``torch.compile``: fewer passes over memory, after a compilation of seconds to minutes.

The kernels are made for the shapes of the first batch, and anew for each other shape. Their results differ from those
of PyTorch's own kernels by rounding.
"""

from typing import cast

import torch
from torch import nn

from autotailor.ir.errors import AutoTailorError


class CompilationError(AutoTailorError):
    """This machine cannot compile networks."""


def compiled(network: nn.Module) -> nn.Module:
    """A network that computes with compiled kernels; it shares its parameters and buffers with the given one.

    Compilation takes place when the network first runs, in training and in evaluation each.
    """
    return cast("nn.Module", torch.compile(network, dynamic=False))


def check_compiler(device: torch.device, key: str) -> None:
    """Compiles a small network, so that a machine that cannot is told before hours of work.

    Args:
        device: that computes.
        key: of the configuration that asks for it, for messages.

    Raises:
        CompilationError: the machine has no compiler that PyTorch can use.
    """
    network = nn.Conv2d(1, 1, 1).to(device)
    try:
        compiled(network)(torch.zeros(1, 1, 2, 2, device=device)).sum().backward()
    except Exception as error:  # whatever the compiler meets: PyTorch's own errors have no common class
        needed = "a C++ compiler (g++)" if device.type == "cpu" else "Triton and a C compiler"
        reason = str(error).strip().partition("\n")[0]
        raise CompilationError(
            f"{key}: PyTorch cannot compile networks on {device} of this machine, for which it needs {needed}: "
            f"{reason}; install that, or set {key} to false"
        ) from error
