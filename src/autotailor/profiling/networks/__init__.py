"""Whole networks on a device: they are converted, timed, and compared with what the LUT predicts."""
