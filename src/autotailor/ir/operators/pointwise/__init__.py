"""Operators that compute each element by itself, activations along an axis, and normalisation."""
