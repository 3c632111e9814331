"""The look-up table (LUT) of latencies, and the store of measurements that all runs and models share."""
