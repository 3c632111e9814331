"""autotailor: one trained network, tailored to many devices."""

from autotailor.compiler import compile_network as compile  # noqa: A004
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.subnet import SubNet
from autotailor.ir.supernet import SuperNet

load = SuperNet.load

__all__ = ["AutoTailorError", "SubNet", "SuperNet", "compile", "load"]
