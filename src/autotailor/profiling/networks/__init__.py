"""Whole networks on a device: converted, timed, and held against what the LUT predicts."""
