"""Operator rules, one file for each family; importing this package registers them all.

``pointwise`` holds sums, activations, other functions of single numbers, and normalisation; ``products`` what sums
over an axis (MatMul, Gemm, Einsum, reductions, recurrent layers); ``windows`` convolutions and pooling; ``layout`` what
moves numbers about (Reshape, Concat).
"""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
