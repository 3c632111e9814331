"""One file for each kind of dataset; ``data/registry.py`` imports that of a kind's name, and all where none has it."""
