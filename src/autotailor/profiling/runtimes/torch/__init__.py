"""The runtime ``torch``: eager PyTorch, on this computer (``runtime.py``) and on boards (``remote.py``)."""
