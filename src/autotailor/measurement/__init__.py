"""Rule measure: exported SubNets beside what was predicted, and the uniformly scaled network."""
