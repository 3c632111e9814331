"""The command line, one module or folder for each command, and the check of feasibility at the start of a run."""
