"""PyTorch, eagerly, on this computer and on boards. The registry opens ``runtime.py`` and ``remote.py``."""
