"""Operators with a sliding window."""
