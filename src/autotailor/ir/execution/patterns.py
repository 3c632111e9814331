"""The subgraphs that PyTorch computes with one function; runtimes that fuse them as well share the patterns.

Reading this file needs no PyTorch; ``kernels.py`` says which function computes which subgraph.
"""

from autotailor.ir.pattern import Pattern

ATTENTION = "ScaledDotProductAttention"
GELU = (
    Pattern("Gelu", "Mul(Mul(x, Add(Erf(Div(x, 1.41421356)), 1.0)), 0.5)"),
    Pattern("Gelu", "Mul(x, Mul(Add(Erf(Div(x, 1.41421356)), 1.0), 0.5))"),
)
SWISH = Pattern("Swish", "Mul(x, Sigmoid(x))")
"""PyTorch's kernels do without it; runtimes have it."""
BIASED_MATMUL = Pattern("MatMul", "Add(MatMul(x, W), B)", vectors=("B",))
_TRANSPOSED = "Transpose(k, perm=(0, 1, 3, 2))"
_WEIGHTED = "MatMul(Softmax({scores}, axis=-1), v)"
_SCORES = {
    f"MatMul(Mul(q, SCALE), Mul({_TRANSPOSED}, KEYSCALE))": ("SCALE", "KEYSCALE"),
    f"MatMul(Mul(q, SCALE), {_TRANSPOSED})": ("SCALE",),
    f"Mul(MatMul(q, {_TRANSPOSED}), SCALE)": ("SCALE",),
    f"Div(MatMul(q, {_TRANSPOSED}), DIVISOR)": ("DIVISOR",),
}
"""Scores of attention as exporters write them, and the factors of one element."""

PATTERNS = (
    *GELU,
    *(Pattern(ATTENTION, _WEIGHTED.format(scores=s), attributes=factors) for s, factors in _SCORES.items()),
    BIASED_MATMUL,
)
"""What runs as one function. Where two patterns overlap, the earlier one holds."""
