"""From a trained network to a SuperNet."""

from autotailor.compiler.compile import compile_network

__all__ = ["compile_network"]
