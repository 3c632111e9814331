"""A pool under a load that is made for it: burdens, phases, and the trace of what happened."""
