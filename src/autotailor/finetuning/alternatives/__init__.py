"""Training of alternatives of blocks beside the network that was given: each alone, then where SubNets have them."""
