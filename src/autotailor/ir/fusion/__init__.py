"""Fused operators: the rules of a runtime, patterns of subgraphs, and the places of a SuperNet that fuse."""
