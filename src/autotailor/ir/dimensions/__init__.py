"""Dimensions: every axis of every tensor as an expression of atoms."""
