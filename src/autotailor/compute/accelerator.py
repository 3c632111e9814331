"""The accelerator that trains and evaluates networks: a GPU where there is one, else the processor.

The parameter is called ``accelerator``, because ``device`` names the target device, for which networks are tailored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from autotailor.ir.errors import AutoTailorError
from autotailor.values import OneOf

if TYPE_CHECKING:
    import torch

_NAME = re.compile(r"^(auto|cpu|mps|cuda(:[0-9]{1,3})?)$")
Accelerator = Annotated[str, OneOf("auto", "cpu", "cuda", "cuda:N", "mps", pattern=_NAME.pattern)]
"""The name of an accelerator in a section of the configuration."""


class AcceleratorError(AutoTailorError):
    """An accelerator has an unknown name, or this machine does not have the accelerator."""


def check_name(name: object, where: str) -> None:
    """Raises AcceleratorError unless a name is ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.

    Args:
        name: of the accelerator; whether this machine has the accelerator is not asked.
        where: the parameter, for the message.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise AcceleratorError(f"{where}: unknown accelerator {name!r}; known are auto, cpu, cuda, cuda:N and mps")


def check_present(name: str) -> None:
    """Raises AcceleratorError where this machine lacks a named accelerator; PyTorch is imported only to ask for one."""
    if name not in ("auto", "cpu"):
        resolve(name)


def resolve(name: str) -> torch.device:
    """The PyTorch device of an accelerator; ``auto`` takes CUDA, else MPS, else the processor.

    Returns:
        A device that equals the device of tensors on the accelerator: with an index where there can be several.

    Raises:
        AcceleratorError: the name is unknown, or this machine does not have the accelerator.
    """
    import torch

    check_name(name, "accelerator")
    if name == "cpu":
        return torch.device("cpu")
    if name == "mps" or (name == "auto" and not torch.cuda.is_available()):
        if torch.backends.mps.is_available():
            return torch.device("mps", 0)
        if name == "auto":
            return torch.device("cpu")
        raise AcceleratorError(_absent(name, "a Mac with an Apple GPU, and a PyTorch that was built for it"))
    if not torch.cuda.is_available():
        raise AcceleratorError(_absent(name, "an NVIDIA GPU with its driver, and a PyTorch that was built with CUDA"))
    index, count = torch.device(name).index if name != "auto" else None, torch.cuda.device_count()
    if index is not None and index >= count:
        names = ", ".join(f"cuda:{number}" for number in range(count))
        raise AcceleratorError(f"accelerator {name}: this machine has only {names}; name one of these, or set cuda")
    return torch.device("cuda", torch.cuda.current_device() if index is None else index)


def _absent(name: str, needed: str) -> str:
    import torch

    return (
        f"accelerator {name}: PyTorch {torch.__version__} finds none on this machine. It needs {needed}; with auto, "
        f"training takes whatever the machine has"
    )
