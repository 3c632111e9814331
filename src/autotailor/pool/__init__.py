"""The stage `pool`: SubNets of the front that share one file of weights on a device."""
