"""Budgets that hold: how far a measured latency may be from the predicted one."""
