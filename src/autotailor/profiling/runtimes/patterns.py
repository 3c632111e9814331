"""Patterns of operators that several runtimes run as one operator."""

from autotailor.ir.execution.patterns import BIASED_MATMUL, GELU
from autotailor.ir.pattern import Pattern

__all__ = ["BIASED_MATMUL", "GELU", "SWISH"]

SWISH = Pattern("Swish", "Mul(x, Sigmoid(x))")
