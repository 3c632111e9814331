"""autotailor: one trained network, tailored to many devices.

The names below are imported on first use: PyTorch and ONNX take seconds to import, and a configuration check or
a dry run needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotailor.compiler.compile import compile_network as compile  # noqa: A004
    from autotailor.ir.errors import AutoTailorError
    from autotailor.ir.subnet import SubNet
    from autotailor.ir.supernet import SuperNet
    from autotailor.ir.supernet import load_supernet as load

__all__ = ["AutoTailorError", "SubNet", "SuperNet", "compile", "load"]

_HOMES = {
    "AutoTailorError": ("autotailor.ir.errors", "AutoTailorError"),
    "SubNet": ("autotailor.ir.subnet", "SubNet"),
    "SuperNet": ("autotailor.ir.supernet", "SuperNet"),
    "compile": ("autotailor.compiler.compile", "compile_network"),
    "load": ("autotailor.ir.supernet", "load_supernet"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'autotailor' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = globals()[name] = getattr(import_module(module), attribute)
    return value
