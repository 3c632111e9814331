"""The runtime ``onnxruntime``: ONNX Runtime on processors. Its class is in ``runtime.py``."""
