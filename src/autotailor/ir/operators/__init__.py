"""Operator rules, one file for each family; importing this package registers them all.

``pointwise`` holds sums, activations and other functions of single numbers, ``products`` matrices (MatMul, Gemm,
Einsum), ``windows`` convolutions and pooling, ``layout`` what moves numbers about (Reshape, Concat).
"""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
