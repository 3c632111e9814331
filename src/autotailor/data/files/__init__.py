"""Contents of files; their hashes are remembered, so that a large folder is read only once."""
