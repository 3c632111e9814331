"""Passes over an ONNX model, each one subject; ``normalise.py`` says in what order."""
