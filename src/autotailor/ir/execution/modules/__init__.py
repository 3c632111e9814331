"""Graphs and SuperNets as PyTorch modules (the paper's ``build``)."""
