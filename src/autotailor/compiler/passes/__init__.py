"""Passes over an ONNX model, one subject per file; ``compiler/normalise.py`` runs them in order."""
