"""The runners that time programs on a device: a loop in Python, and a compiled program with its manifest."""
