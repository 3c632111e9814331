"""The runner that times programs on a device: the Python loop, and the compiled binary with its manifest."""
