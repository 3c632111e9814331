"""Evaluations of SubNets that share prefixes: which tensors are kept, and in which order the SubNets run."""
