"""The command line: ``inspect``, ``doctor``, ``lut``, and the check of feasibility at the start of a run."""
