"""The search space: variables, SubNets, the sizes that follow from both, and metrics as sums of terms."""
