"""Metrics that follow from the graph: latency from a LUT, MACs, parameters, peak memory, elasticity."""
