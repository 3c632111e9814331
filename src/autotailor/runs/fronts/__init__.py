"""Fronts of two or three metrics of a finished run, under limits of any metrics."""
