"""Writes an operator as the ncnn layers that pnnx writes for it; each family of operators has a file.

A new kind of operator is one small function with ``@writes(kind)``. Importing this package registers all functions.
"""

import importlib
import pkgutil

from autotailor.profiling.runtimes.ncnn.layers.layer import LAYERS, Fragment, Layer, Step, fragment, ncnn_shape

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["LAYERS", "Fragment", "Layer", "Step", "fragment", "ncnn_shape"]
