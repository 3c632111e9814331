"""The compiler turns a trained network into a SuperNet.

The names below are imported on first use, see ``autotailor.lazy``: who only makes a network by its name needs no ONNX.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.compiler.compile import compile_network, read_graph

__getattr__ = attach(__name__)
