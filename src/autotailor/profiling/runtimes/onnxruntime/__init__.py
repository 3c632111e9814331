"""ONNX Runtime on processors. ``runtime.py`` is what the registry opens."""
