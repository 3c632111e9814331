"""The compiler turns a trained network into a SuperNet."""

from autotailor.compiler.compile import compile_network, read_graph

__all__ = ["compile_network", "read_graph"]
