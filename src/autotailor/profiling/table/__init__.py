"""The look-up table of latencies, and the store that all runs and models share."""
