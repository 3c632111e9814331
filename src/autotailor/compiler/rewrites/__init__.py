"""Rewrites of a model: one way of writing what exporters write in several."""
