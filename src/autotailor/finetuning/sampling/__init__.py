"""Sampling strategies: which SubNets each training step trains. One file and one ``register`` each."""

from autotailor.finetuning.sampling.strategy import Strategy, create, names, register

__all__ = ["Strategy", "create", "names", "register"]
