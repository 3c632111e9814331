"""The command line: ``inspect``, ``doctor``, ``lut``, and the check of feasibility that a run starts with."""
