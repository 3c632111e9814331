"""autotailor: one trained network, tailored to many devices.

The names below are imported on first use: PyTorch and ONNX take seconds to import, and a configuration check or
a dry run needs neither (``autotailor.lazy``).
"""

from typing import TYPE_CHECKING

from autotailor.data import labels as _labels
from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.compiler.compile import compile_network as compile  # noqa: A004
    from autotailor.ir.errors import AutoTailorError
    from autotailor.ir.space.subnet import SubNet
    from autotailor.ir.supernet import SuperNet
    from autotailor.ir.supernet import load_supernet as load
    from autotailor.runs.run import open_run

__all__ = ["AutoTailorError", "SubNet", "SuperNet", "compile", "load", "open_run"]
__getattr__ = attach(__name__)


def _task(name: str) -> _labels.Labelled:
    from autotailor.task.registry import find

    return find(name)


_labels.tasks_are_found(_task)
