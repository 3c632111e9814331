"""Operators that move, join, cut, repeat or resize data."""
