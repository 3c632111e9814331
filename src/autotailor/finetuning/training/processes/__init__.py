"""Several processes that train one network together, each on its part of every batch (torchrun)."""
