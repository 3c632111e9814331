"""Patterns of operators that several runtimes run as one operator."""

from __future__ import annotations

from autotailor.ir.fusion.pattern import Pattern

GELU = (
    Pattern("Gelu", "Mul(Mul(x, Add(Erf(Div(x, 1.41421356)), 1.0)), 0.5)"),
    Pattern("Gelu", "Mul(x, Mul(Add(Erf(Div(x, 1.41421356)), 1.0), 0.5))"),
)
SWISH = Pattern("Swish", "Mul(x, Sigmoid(x))")
BIASED_MATMUL = Pattern("MatMul", "Add(MatMul(x, W), B)", vectors=("B",))
