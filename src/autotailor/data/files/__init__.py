"""Contents of files: hashes that are remembered, so that a large folder is read once."""
