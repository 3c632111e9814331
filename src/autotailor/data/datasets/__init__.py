"""One file for each kind of dataset; ``data/registry.py`` imports these files by name."""
