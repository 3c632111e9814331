"""Budgets with several limits at once: latency, energy, peak memory, parameters and MACs of one SubNet."""
