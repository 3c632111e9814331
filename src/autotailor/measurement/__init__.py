"""Rules measure and compare: exported SubNets, predicted and measured, and uniformly scaled networks."""
